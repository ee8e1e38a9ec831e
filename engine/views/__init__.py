"""Structure: moves, and the index maps from sources to targets that they make."""
