"""From an opened checkpoint to a module and the plan that fills it."""
