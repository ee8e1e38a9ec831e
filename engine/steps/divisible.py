"""Value steps that can make some rows of their result from some rows of what they take."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from weightloom.engine.views.program import ValueStep
from weightloom.engine.views.rank_slice import Slice

Part = tuple[ValueStep, tuple[Slice | None, ...]]
"""The step that makes a part, and for each slot that it takes the rows of it (None: all)."""


@runtime_checkable
class Divisible(Protocol):
    """A step with a `part`; it gives one tensor."""

    @property
    def at(self) -> int:
        """The first slot that it takes."""
        ...

    @property
    def arity(self) -> int:
        """How many slots it takes."""
        ...

    def part(self, rows: Slice) -> Part | None:
        """Say how to make these rows of the result alone; None where it must be made whole."""
        ...
