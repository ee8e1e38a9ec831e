"""The studio: a rule file beside the mapping that it makes, on a page of this machine alone."""
