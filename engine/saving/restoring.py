"""Groups whose inputs are kept: written back from the source's bytes, if their parameters are as they were loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import NotInvertible
from weightloom.engine.planning.groups import Group
from weightloom.engine.reading.origin import CheckpointOrigin, Origin
from weightloom.engine.reading.results import Results, source_pieces


def restored(back: Iterable[Group], origin: Origin, checkpoint: Checkpoint | None) -> Collection[str]:
    """Compute again what was loaded, compare it bit for bit with what `origin` has, and name the tensors to restore.

    They are those of the groups that restore and whose parameters are as they were; the checkpoint has their bytes.
    Of other groups they are computed, or, where a step cannot be, NotInvertible names the parameter and the rule.
    """
    found: list[str] = []
    for group in back:
        if not group.program.rounds:
            continue
        if checkpoint is None or not checkpoint.has_data:
            changed, why = group.sources[0], "was never loaded from it"
        else:
            changed, why = _changed(group, origin, checkpoint), "is not as it was loaded"
        if not changed:
            found += group.targets
        elif not group.program.computes:
            raise _refusal(group, changed, why)
    return frozenset(found)


def refuse_restoring(groups: Iterable[Group]) -> None:
    """Refuse to write tensors that no step can compute; raises NotInvertible."""
    for group in groups:
        if not group.program.computes:
            raise _refusal(group, group.targets[0], "is made of values that this layout does not hold")


def _changed(group: Group, origin: Origin, checkpoint: Checkpoint) -> str:
    """Name the first parameter that is not as it was loaded; "" where all are."""
    assert group.forward is not None
    results = Results(CheckpointOrigin(checkpoint))
    for number, name in enumerate(group.sources):
        if not same_bytes(results.pieces(group.forward, number), source_pieces(group, number, origin)):
            return name
    return ""


def same_bytes(one: Iterable[memoryview], other: Iterable[memoryview]) -> bool:
    """Compare two streams of bytes, however each is cut."""
    rest = memoryview(b"")
    pieces = iter(other)
    for piece in _filled(one):
        start = 0
        while start < len(piece):
            rest = rest or next(_filled(pieces), rest)
            count = min(len(rest), len(piece) - start)
            if not count or rest[:count] != piece[start : start + count]:
                return False
            start, rest = start + count, rest[count:]
    return not rest and next(_filled(pieces), None) is None


def _filled(pieces: Iterable[memoryview]) -> Iterator[memoryview]:
    return (piece for piece in pieces if len(piece))


def _refusal(group: Group, name: str, why: str) -> NotInvertible:
    return NotInvertible(
        f"{name} {why}, and {group.targets[0]} has no way back from other values",
        expected="the parameter as it was loaded, for which the source's own bytes are written",
        hint="save in another layout, which does not claim the original bytes",
        tensor=name,
        rule=group.rule.title() if group.rule else None,
    )
