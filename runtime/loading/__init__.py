"""From a path to a running model."""
