"""What is on disk: the headers of a checkpoint, checked, and where each byte is."""
