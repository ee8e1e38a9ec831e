"""The command line: arguments, outcomes, printing, exit codes."""
