"""What ops that put tensors together ask of them."""

from __future__ import annotations

from weightloom.engine.errors import PlanError


def check_alike(op: str, kinds: list[tuple[str | None, tuple[int, ...]]]) -> None:
    """Refuse tensors that differ in dtype, or in shape beside the joined axis."""
    if len(set(kinds)) > 1:
        other = next(kind for kind in kinds if kind != kinds[0])
        raise PlanError(
            f"{op}: tensors of {kinds[0][0]} {list(kinds[0][1])} and of {other[0]} {list(other[1])}",
            expected="one dtype, and one shape beside the axis that is joined",
            field="operations",
        )
