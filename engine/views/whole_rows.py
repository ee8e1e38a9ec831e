"""Whether a program leaves the rows of some of its tensors whole: packed words, and scales of groups along a row."""

from __future__ import annotations

from collections.abc import Sequence

from weightloom.engine.views.moves import Cut, Join, Permute, Reorder, Reshape
from weightloom.engine.views.program import Program, Step, infer_step


def tearing_step(program: Program, packed: Sequence[bool]) -> Step | None:
    """Give the first step that takes rows (along the last dim) of a packed slot apart, or computes with them."""
    specs, flags = program.in_specs, [*packed, *(False for _ in program.in_specs[len(packed) :])]
    for step in program.moves:
        after = infer_step(step, specs)
        if isinstance(step, Reorder):
            flags = [flags[slot] for slot in step.order]
        else:
            taken = _taken(step)
            ndim = len(specs[step.at].shape)
            if any(flags[step.at : step.at + taken]) and not _keeps_rows(step, ndim):
                return step
            given = len(after) - len(specs) + taken
            flags[step.at : step.at + taken] = [any(flags[step.at : step.at + taken])] * given
        specs = after
    return None


def _taken(step: Step) -> int:
    if isinstance(step, Join):
        return len(step.sizes)
    return 1 if isinstance(step, Reshape | Permute | Cut) else step.arity  # type: ignore[union-attr]


def _keeps_rows(step: Step, ndim: int) -> bool:
    if isinstance(step, Reshape):
        return bool(step.old and step.new) and step.old[-1] == step.new[-1]
    if isinstance(step, Permute):
        return step.axes[-1] == ndim - 1
    return isinstance(step, Cut | Join) and step.dim != ndim - 1
