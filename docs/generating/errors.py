"""The public errors as a tree."""

from __future__ import annotations

from collections.abc import Iterator

import weightloom.engine
import weightloom.rules
from docs.generating.tables import sentence
from weightloom.engine import WeightloomError

_PUBLIC = {*weightloom.engine.__all__, *weightloom.rules.__all__}


def text() -> str:
    """Give the errors, each below the one that it is a kind of."""
    return "\n".join(_lines(WeightloomError, 0))


def kinds(error: type[WeightloomError]) -> list[type[WeightloomError]]:
    """Give the direct kinds of an error that callers can name, by name."""
    return sorted((kind for kind in error.__subclasses__() if kind.__name__ in _PUBLIC), key=lambda kind: kind.__name__)


def _lines(error: type[WeightloomError], depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}* `{error.__name__}`: {sentence(error.__doc__ or '')} (exit code {error.exit_code})"
    for kind in kinds(error):
        yield from _lines(kind, depth + 1)
