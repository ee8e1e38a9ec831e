"""A GGUF's keys as the files that the same model is published with."""
