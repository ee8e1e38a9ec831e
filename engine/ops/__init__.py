"""The ops that rules are built from."""
