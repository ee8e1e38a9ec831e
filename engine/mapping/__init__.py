"""Rules as values: what is searched in a name, and what becomes of it."""
