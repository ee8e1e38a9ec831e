"""Packages for plugin authors to start from: templates, filled in and written."""
