"""weightloom.runtime."""
