"""Proposing rules: from what is on disk and what is wanted to a rule file, with what is left to decide marked."""
