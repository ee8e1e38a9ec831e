"""What a load left over, for the way back, and what a save has no place for."""

from __future__ import annotations

from collections.abc import Iterable

from weightloom.engine.carrier import carried, memory_of
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import NotInvertible
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.reading.origin import CheckpointOrigin, Filler, Origin, zeros
from weightloom.engine.reading.results import Results
from weightloom.engine.reading.virtual_file import load_arrays


def left_over(plan: Plan) -> tuple[str, ...]:
    """Say of each remainder what it is of, and the rule that leaves it over: targets have no place for its values."""
    return tuple(
        f"{spec} of {', '.join(group.sources)}, beside {', '.join(group.targets)}"
        + (f" [{group.rule.title()}]" if group.rule else "")
        for group in plan.groups
        for spec in group.program.out_specs[len(group.targets) :]
    )


def filler_of(checkpoint: Checkpoint | None) -> Filler:
    """Give what fills a group on the way back: its remainder in the checkpoint; zeros where none was ever read.

    Where the parameters became another float type, so does the remainder.
    """
    if checkpoint is None or not checkpoint.has_data:
        return zeros
    results = Results(CheckpointOrigin(checkpoint))

    def fill(group: Group, slot: int) -> memoryview:
        if group.forward is None:
            return zeros(group, slot)
        data = memoryview(b"".join(results.pieces(group.forward, slot)))
        return _as_dtype(data, group, slot)

    return fill


def _as_dtype(data: memoryview, group: Group, slot: int) -> memoryview:
    assert group.forward is not None
    spec, wanted = group.forward.program.out_specs[slot], group.program.in_specs[slot]
    if spec.dtype == wanted.dtype:
        return data
    import mlx.core as mx

    def copy(_: int, out: memoryview) -> None:
        out[:] = data

    (array,) = load_arrays([carried(spec)], copy)
    return memory_of(array.astype(getattr(mx, DTYPES[wanted.dtype or ""].mlx or "")))


def check_fillers(origin: Origin, groups: Iterable[Group]) -> None:
    """Refuse a save that would lose values: what a load filled with zeros is zeros still.

    Raises NotInvertible, naming the parameter and the rule.
    """
    results = Results(origin)
    for group in groups:
        for number in range(len(group.targets), len(group.program.out_specs)):
            if any(piece.tobytes().strip(b"\0") for piece in results.pieces(group, number)):
                raise NotInvertible(
                    f"{group.sources[0]} has values in rows that the checkpoint has no place for "
                    f"({group.program.out_specs[number]})",
                    expected="zeros there, as they were loaded",
                    hint="set those rows to zero, or save in a layout that has them",
                    tensor=group.sources[0],
                    rule=group.rule.title() if group.rule else None,
                )
