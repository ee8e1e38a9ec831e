"""weightloom.engine."""
