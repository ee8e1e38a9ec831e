"""Layouts that a module reads in a form of its own: rules rewritten so that they lead there."""
