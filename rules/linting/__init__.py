"""What can be wrong in a rule file, found from the file alone."""
