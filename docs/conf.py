"""How Sphinx builds these pages: `make docs`. Nothing is fetched, and a warning is an error."""

from importlib.metadata import version as installed

project = "weightloom"
author = "the weightloom developers"
release = version = installed("weightloom")

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
# Headings down to this level can be linked to, as on a page that shows Markdown.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"weightloom {release}"
html_show_copyright = False
html_copy_source = False
