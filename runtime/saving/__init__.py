"""Writing a loaded model, in the layout that it came in or another."""
