"""weightloom.plugins."""
