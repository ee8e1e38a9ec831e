"""Sharding: which part of each parameter one rank of several holds.

A kind says along which axis a parameter is cut, counted from the end so that stacked experts need nothing of
their own: a weight is (..., out, in). `column` cuts out, `row` cuts in, `packed` cuts each half of out (gate over
up), `vocab` cuts the first axis, `expert` cuts the stack, `replicate` cuts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.patterns import SourcePattern, compile_source
from weightloom.engine.view import View

Kind = Literal["column", "row", "packed", "vocab", "expert", "replicate"]


@dataclass(frozen=True, init=False)
class Sharding:
    """Rank `rank` of `size`, and patterns on parameter names; the first that matches decides.

    A parameter that no pattern matches is replicated. Raises RuleError for an unknown kind or rank.
    """

    rank: int
    size: int
    kinds: tuple[tuple[str, Kind], ...]

    def __init__(self, rank: int, size: int, kinds: Mapping[str, Kind]) -> None:
        if not 0 <= rank < size:
            raise RuleError(f"rank {rank} of {size}", expected="0 <= rank < size", field="rank")
        wrong = [kind for kind in kinds.values() if kind not in get_args(Kind)]
        if wrong:
            raise RuleError(f"sharding kind {wrong[0]!r}", expected=", ".join(get_args(Kind)), field="kind")
        for name, value in (("rank", rank), ("size", size), ("kinds", tuple(kinds.items()))):
            object.__setattr__(self, name, value)

    @cached_property
    def _compiled(self) -> tuple[tuple[SourcePattern, Kind], ...]:
        return tuple((compile_source(text, {}, anchored=False), kind) for text, kind in self.kinds)

    def kind_of(self, name: str) -> Kind:
        """Say how a parameter is cut."""
        for pattern, kind in self._compiled:
            if pattern.search(name):
                return kind
        return "replicate"

    def cut(self, name: str, view: View) -> View:
        """Give this rank's part of a parameter; PlanError names it when it does not divide."""
        kind = self.kind_of(name)
        if kind == "replicate" or self.size == 1:
            return view
        dim = self._axis(name, kind, len(view.shape))
        halves = 2 if kind == "packed" else 1
        rows, rest = divmod(view.shape[dim], halves * self.size)
        if rest:
            raise PlanError(
                f"{name}: {view.shape[dim]} rows along dim {dim} do not divide among {self.size} ranks ({kind})",
                expected=f"a multiple of {halves * self.size}",
                hint="replicate this parameter, or use another number of ranks",
                tensor=name,
            )
        half = view.shape[dim] // halves
        starts = [n * half + self.rank * rows for n in range(halves)]
        parts = [view.cut(dim, start, start + rows) for start in starts]
        return parts[0] if len(parts) == 1 else View.join(parts, dim)

    def _axis(self, name: str, kind: Kind, ndim: int) -> int:
        # A bias has the output axis alone.
        dim = {"column": max(ndim - 2, 0), "packed": max(ndim - 2, 0), "row": ndim - 1}.get(kind, 0)
        if ndim == 0 or (kind == "row" and ndim < 2):
            raise PlanError(
                f"{name} has {ndim} dims and cannot be cut by {kind}",
                expected="a weight of two dims or more",
                tensor=name,
            )
        return dim
