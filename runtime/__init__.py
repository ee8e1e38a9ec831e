"""The everyday door: inspect, plan, verify and convert checkpoints, from Python and from the command line."""
