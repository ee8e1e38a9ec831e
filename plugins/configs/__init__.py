"""config.json's fields as values: read strictly, repaired by name."""
