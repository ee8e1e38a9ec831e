"""Sharding: which part of each parameter one rank of several holds.

A kind says along which axis a parameter is cut, counted from the end so that stacked experts need nothing of
their own: a weight is (..., out, in). `column` cuts out, `row` cuts in, `packed` cuts each half of out (gate over
up), `vocab` cuts the first axis, `expert` cuts the stack, `replicate` cuts nothing.

A quantized weight is cut between two blocks that share a scale, and its scales with it; never inside one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.mapping.patterns import SourcePattern, compile_source
from weightloom.engine.planning.blocks_of_scales import Blocks, blocks_along, is_factor, scales_of, weight_of
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.rank_slice import Rows, Slice
from weightloom.engine.views.view import View

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
        return self._stated(name) or "replicate"

    def _stated(self, name: str) -> Kind | None:
        """Give the kind of the first pattern that matches a parameter; None where none does."""
        return next((kind for pattern, kind in self._compiled if pattern.search(name)), None)

    def slice_of(self, name: str, params: Mapping[str, TensorSpec]) -> Slice | None:
        """Say which rows of parameter `name` of `params` are this rank's; None for all.

        Raises PlanError, naming the parameter, when it does not divide, or when the cut would tear a block of a
        quantized weight from its scale.
        """
        if self.size == 1:
            return None
        weight = weight_of(name, params)
        kind = self._kind_of_both(name, weight, params)
        if kind == "replicate":
            return None
        if weight not in params:
            raise PlanError(f"there is no parameter {name} to cut", expected="one of the plan's", tensor=name)
        whole = self._even(weight, kind, params[weight].shape)
        self._check_blocks(weight, whole, params)
        return whole if weight == name else self._of_scales(name, weight, whole, params)

    def cut(self, name: str, view: View, params: Mapping[str, TensorSpec] | None = None) -> View:
        """Give this rank's part of a parameter; raises as `slice_of`. Not in `params`, it stands alone."""
        known = params if params is not None and name in params else {name: view.spec}
        part = self.slice_of(name, known)
        return view if part is None else part.of_view(view)

    def _even(self, name: str, kind: Kind, shape: tuple[int, ...]) -> Slice:
        dim = self._axis(name, kind, len(shape))
        halves = 2 if kind == "packed" else 1
        rows, rest = divmod(shape[dim], halves * self.size)
        if rest:
            raise PlanError(
                f"{name}: {shape[dim]} rows along dim {dim} do not divide among {self.size} ranks ({kind})",
                expected=f"a multiple of {halves * self.size}",
                hint="replicate this parameter, or use another number of ranks",
                tensor=name,
            )
        starts = (half * shape[dim] // halves + self.rank * rows for half in range(halves))
        return Slice(dim, tuple((start, start + rows) for start in starts))

    def _kind_of_both(self, name: str, weight: str, params: Mapping[str, TensorSpec]) -> Kind:
        """The kind of a parameter: of scales that no pattern is about, their weight's; else it must be the same."""
        kind = self.kind_of(weight)
        for other in (name, *scales_of(weight, params)):
            if self._stated(other) not in (None, kind):
                raise PlanError(
                    f"{weight} is to be cut by {kind} and {other} by {self.kind_of(other)}",
                    expected="a weight and its scales to be cut alike",
                    hint="let one pattern match both",
                    tensor=other,
                )
        return kind

    def _check_blocks(self, weight: str, whole: Slice, params: Mapping[str, TensorSpec]) -> None:
        total = params[weight].shape[whole.dim]
        for scales in scales_of(weight, params):
            found = _blocks(whole.dim, weight, scales, params)
            # All ranks must refuse where one has to.
            torn = [row for rows in self._everybodys(whole) if (row := found.torn(rows, total)) is not None]
            if torn:
                raise _torn(weight, whole.dim, torn[0], found, self.size)

    def _everybodys(self, whole: Slice) -> list[Rows]:
        by_rank = ((rank - self.rank, rows) for rank in range(self.size) for rows in whole.ranges)
        return [(start + away * (stop - start), stop + away * (stop - start)) for away, (start, stop) in by_rank]

    def _of_scales(self, name: str, weight: str, whole: Slice, params: Mapping[str, TensorSpec]) -> Slice | None:
        found = _blocks(whole.dim, weight, name, params)
        if found.count == 1:
            return None
        return Slice(whole.dim, tuple(found.covering(rows) for rows in whole.ranges))

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


def _blocks(dim: int, weight: str, scales: str, params: Mapping[str, TensorSpec]) -> Blocks:
    try:
        return blocks_along(dim, params[weight], params[scales], is_factor(scales))
    except PlanError as error:
        raise PlanError(f"{scales}: {error.seen}", expected=error.expected, tensor=scales) from error


def _torn(weight: str, dim: int, row: int, found: Blocks, size: int) -> PlanError:
    number = row // found.size
    return PlanError(
        f"{weight}: a cut among {size} ranks at {row} along dim {dim} lies inside group {number}, "
        f"{number * found.size} to {(number + 1) * found.size}, which has one scale",
        expected=f"{found.count} groups that divide among {size} ranks",
        hint="replicate this layer, or use another number of ranks",
        tensor=weight,
    )
