"""MLX's packed formats: what fits, how it is seen from shapes, and packing and unpacking as steps of a plan."""
