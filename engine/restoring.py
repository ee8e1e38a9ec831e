"""Groups whose inputs are kept: written back from the source's bytes, if their parameters are as they were loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from weightloom.engine.carrier import memory_of
from weightloom.engine.checkpoint import Checkpoint
from weightloom.engine.errors import NotInvertible
from weightloom.engine.groups import Group
from weightloom.engine.origin import CheckpointOrigin
from weightloom.engine.results import Results

if TYPE_CHECKING:
    import mlx.core as mx


def check_restored(back: Iterable[Group], params: Mapping[str, mx.array], checkpoint: Checkpoint | None) -> None:
    """Compute again what was loaded, and compare it with the parameters, bit for bit.

    Raises NotInvertible, naming the parameter and the rule, where they differ or nothing was ever loaded.
    """
    groups = [group for group in back if group.program.restores]
    if not groups:
        return
    if checkpoint is None or not checkpoint.has_data:
        raise _refusal(groups[0], groups[0].sources[0], "was never loaded from it")
    results = Results(CheckpointOrigin(checkpoint))
    for group in groups:
        assert group.forward is not None
        for number, name in enumerate(group.sources):
            _check(group, number, params[name], results)


def refuse_restoring(groups: Iterable[Group]) -> None:
    """Refuse to write tensors that no step can compute; raises NotInvertible."""
    for group in groups:
        if group.program.restores:
            raise _refusal(group, group.targets[0], "is made of values that this layout does not hold")


def _check(group: Group, number: int, param: mx.array, results: Results) -> None:
    assert group.forward is not None
    held, start = memory_of(param), 0
    for piece in results.pieces(group.forward, number):
        if held[start : start + len(piece)] != piece:
            raise _refusal(group, group.sources[number], "is not as it was loaded")
        start += len(piece)


def _refusal(group: Group, name: str, why: str) -> NotInvertible:
    return NotInvertible(
        f"{name} {why}, and {group.targets[0]} has no way back from other values",
        expected="the parameter as it was loaded, for which the source's own bytes are written",
        hint="save in another layout, which does not claim the original bytes",
        tensor=name,
        rule=group.rule.title() if group.rule else None,
    )
