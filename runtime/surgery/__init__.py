"""Surgery files, and surgery on what is loaded or converted."""
