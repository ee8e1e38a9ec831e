"""Optional packages of the engine, asked for by name when their work begins."""

from __future__ import annotations

import importlib
from typing import Any

from weightloom.engine.errors import MissingExtra


def need_gguf() -> Any:
    """Give the `gguf` package. Raises MissingExtra, with the import's own error behind it, where it is not there."""
    try:
        importlib.import_module("gguf.quants")
        return importlib.import_module("gguf")
    except ImportError as error:
        raise MissingExtra(
            f"the gguf package cannot be loaded: {error}",
            expected="the gguf package, which computes the values of these block types",
            hint="pip install 'weightloom[gguf]'",
        ) from error
