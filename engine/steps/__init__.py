"""Value steps: what changes elements, after all moves."""
