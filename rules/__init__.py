"""weightloom.rules."""
