"""Parts that several architectures share; an architecture file imports these and never another architecture."""
