"""Disk to disk: convert, verify, and the way back."""
