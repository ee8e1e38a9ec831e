"""From headers and rules to a plan: no tensor is read."""
