"""Which rules, which layout, which half of a checkpoint, and why."""
