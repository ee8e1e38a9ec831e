"""Text to ids and back, from each kind of vocabulary."""
