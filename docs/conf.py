"""How Sphinx builds these pages: `make docs`. Nothing is fetched, and a warning is an error."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

project = "weightloom"
author = "the weightloom developers"
release = version = installed("weightloom")

extensions = ["myst_parser", "sphinx.ext.autodoc", "docs.sphinx_extension"]
exclude_patterns = ["generating"]
smartquotes = False
# Headings down to this level can be linked to, as on a page that shows Markdown.
myst_heading_anchors = 3

# Backticks of a docstring are code, and its members are in the order of the source.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# Types that are not public are shown as text; links between pages must lead somewhere.
nitpick_ignore_regex = [("py:.*", ".*")]

html_theme = "furo"
html_title = f"weightloom {release}"
html_show_copyright = False
html_copy_source = False
