"""Finding what packages offer, by entry point: only what is needed is imported, what is wrong is named."""
