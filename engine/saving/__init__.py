"""From arrays to files: all of them or none."""
