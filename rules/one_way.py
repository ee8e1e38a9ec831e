"""Rules without a way back, found when they are registered and not when a trained model is to be saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

from weightloom.engine.errors import NotInvertible
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.ops.base import ConversionOp


class LoadOnlyWarning(UserWarning):
    """Rules were registered by which checkpoints can be loaded, and not saved back."""


def one_way_notes(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Name each rule that is load only, with the op that has no inverse or the rule's own word for it."""
    return tuple(_notes(rules))


def _notes(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        for op in rule.operations if isinstance(rule, WeightConverter) else ():
            if not op.invertible or type(op).inverse is ConversionOp.inverse:
                yield f"load only, cannot save back: {type(op).__name__} has no inverse, in {rule.title()}"
        if rule.fidelity == "lossy":
            yield f"load only, cannot save back: {rule.title()} says that it is lossy"


def warn_of_one_way(owner: str, rules: Iterable[Rule], strict: bool) -> None:
    """Warn (LoadOnlyWarning) of rules without a way back; with `strict` raise NotInvertible instead."""
    notes = one_way_notes(rules)
    if strict and notes:
        raise NotInvertible(
            f"the rules for {owner!r} are {notes[0]}",
            expected="rules whose every op has an inverse",
            hint="define `inverse` on the op, or register without strict",
            field=owner,
        )
    for note in notes:
        warnings.warn(f"rules for {owner!r}: {note}", LoadOnlyWarning, stacklevel=3)
