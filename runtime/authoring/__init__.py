"""Writing rules: what an author's rules are tried on, planned again whenever they change."""
