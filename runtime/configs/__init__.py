"""config.json: read strictly, repaired by name, changed in place."""
