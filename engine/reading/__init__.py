"""From a plan to arrays: bytes are read straight into their place."""
