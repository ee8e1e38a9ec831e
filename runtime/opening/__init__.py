"""What a path leads to, whatever the format."""
