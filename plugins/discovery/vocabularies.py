"""Vocabularies in files of a form of their own, read by the package that knows it.

Entry-point group `weightloom.tokenizers`. An entry point's name is the mark of the file (`.vocab2`, `words.bin`), its
value a function from the file's path to a `tokenizers.Tokenizer`. It is asked where a directory has no vocabulary of
a form that is known here; what the files beside it say of special tokens and templates holds as for any other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from weightloom.plugins.discovery.marks import marked_point, used

GROUP = "weightloom.tokenizers"


def is_offered(file: Path) -> bool:
    """Whether a package reads such a file; raises PluginError where two claim it."""
    return marked_point(GROUP, file) is not None


def read_offered(file: Path) -> object:
    """Read a file that a package reads; raises PluginError where that fails otherwise than by an error of ours."""
    point = marked_point(GROUP, file)
    assert point is not None
    return used(point, file, lambda reader: cast("Callable[[Path], object]", reader)(file))
