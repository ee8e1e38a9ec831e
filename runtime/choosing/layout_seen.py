"""Which of its family's layouts a checkpoint is in, by its names and what its metadata says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import listed
from weightloom.runtime.choosing.choice import Choice, Wish, find_choice, undecided
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT, MLX
from weightloom.runtime.opening.opening import GGUF, Opened

if TYPE_CHECKING:
    from weightloom.engine.mapping.ruleset import RuleSet
    from weightloom.engine.views.program import Program

_NUMBER = re.compile(r"\d+")
_FIRST_NUMBER = re.compile(r"\D*\d+")
# What becomes of a name: the parameter that it alone leads to ("" where it leads to more, or is not alone), and how.
Fate: TypeAlias = "tuple[str, Program | None]"


@dataclass(frozen=True)
class _Reading:
    """A checkpoint's names as one layout reads them."""

    layout: str
    fates: Mapping[str, Fate]

    @property
    def renamed(self) -> frozenset[str]:
        """Names that mean another to this layout."""
        return frozenset(name for name, (target, _) in self.fates.items() if target != name)

    @property
    def joined(self) -> frozenset[str]:
        """Names that it joins with others, or takes apart."""
        return frozenset(name for name, (target, _) in self.fates.items() if not target)

    def alone(self, others: Iterable[_Reading]) -> frozenset[str]:
        """Give the names that this layout alone speaks of."""
        rest = list(others)
        renamed = self.renamed.difference(*(each.renamed for each in rest))
        return renamed | self.joined.difference(*(each.joined for each in rest))


def choose_opened(opened: Opened, wish: Wish, place: str) -> Choice:
    """Choose the rules of an opened checkpoint, and the layout that it is in.

    The layout is the one that was asked for, else the one that was recorded, else the one that the names show.
    Raises as `choose` does, and CheckpointError where names and metadata leave it open.
    """
    choice = find_opened(opened, wish, place)
    if choice is None:
        raise undecided(opened.config, wish, place)
    return choice


def find_opened(opened: Opened, wish: Wish, place: str) -> Choice | None:
    """Do the same; None where nothing says which rules."""
    settled = wish if wish.layout is not None else replace(wish, layout=opened.layout)
    choice = find_choice(opened.config, settled)
    if choice is None or settled.layout is not None:
        return choice
    return with_seen_layout(choice, opened.checkpoint, place)


def with_seen_layout(choice: Choice, checkpoint: Checkpoint, place: str) -> Choice:
    """Give the choice in the layout that the checkpoint shows; raises CheckpointError where it is left open."""
    known = [layout for layout in choice.known if layout != GGUF]
    if len(known) < 2:
        return choice
    config = choice.config.values if choice.config else {}
    rules = {layout: choice.rules_in(layout) for layout in known}
    said = checkpoint.metadata.get("format")
    if len(set(rules.values())) == 1:
        return replace(choice, layout=_by_format(known, said))
    seen = _sample(checkpoint)
    readings = [_read(layout, rules[layout], seen, config) for layout in known]
    return replace(choice, layout=_decided(readings, said, place))


def _by_format(known: Sequence[str], said: str | None) -> str:
    """Give the layout that a format stands for."""
    wanted = MLX if said == MLX else DEFAULT_LAYOUT
    return next(layout for layout in (wanted, DEFAULT_LAYOUT, known[0]) if layout in known)


def _sample(checkpoint: Checkpoint) -> Checkpoint:
    """Give names, dtypes and shapes of each layer's first tensor of a kind: what holds for one expert does for all."""
    first: dict[tuple[str, str], tuple[list[int], str]] = {}
    for name in checkpoint.tensors:
        start = _FIRST_NUMBER.match(name)
        layer, rest = (name, "") if start is None else (start[0], name[start.end() :])
        found = (list(map(int, _NUMBER.findall(rest))), name)
        kind = (layer, _NUMBER.sub("*", rest))
        first[kind] = min(first.get(kind, found), found)
    specs = {name: checkpoint.logical[name] for _, name in first.values()}
    return Checkpoint.from_specs(specs, checkpoint.metadata)


def _read(layout: str, rules: RuleSet, checkpoint: Checkpoint, config: Mapping[str, object]) -> _Reading:
    from weightloom.engine.planning.build import build_plan  # most families have one layout: nothing is planned

    plan = build_plan(checkpoint, rules, config=config)
    fates: dict[str, Fate] = {kept.name: ("", None) for kept in plan.kept}
    fates |= {kept.name: (kept.name, None) for kept in plan.kept if kept.reason == "dropped"}
    fates |= {each.sources[0]: (each.parameter, None) for each in plan.report.mismatched if len(each.sources) == 1}
    for group in (*plan.groups, *plan.copies):
        alone = len(group.sources) == len(group.targets) == 1
        fates |= dict.fromkeys(group.sources, (group.targets[0] if alone else "", group.program))
    return _Reading(layout, fates)


def _decided(readings: Iterable[_Reading], said: str | None, place: str) -> str:
    """Decide by names that one layout alone speaks of, else by the format that the metadata says."""
    found = list(readings)
    alone = {each.layout: each.alone(other for other in found if other is not each) for each in found}
    speaking = [layout for layout, names in alone.items() if names]
    disputed = _disputed(found)
    by_format = _by_format(list(alone), said)
    if len(speaking) > 1:
        shown = "; ".join(f"{layout} has {listed(sorted(alone[layout]), 2)}" for layout in speaking)
        raise _open(f"its names are of several layouts: {shown}", speaking, place)
    if not disputed:
        return speaking[0] if speaking else by_format
    about = f"{disputed[0]} and {len(disputed) - 1} others" if len(disputed) > 1 else disputed[0]
    if speaking and said is not None and (said == MLX) != (speaking[0] == MLX):
        seen = f"its names are those of {speaking[0]}, its metadata says format {said}, and they differ on {about}"
        raise _open(seen, list(alone), place)
    if not speaking and said is None:
        raise _open(f"its names fit them all, no metadata says more, and they differ on {about}", list(alone), place)
    return speaking[0] if speaking else by_format


def _disputed(readings: list[_Reading]) -> list[str]:
    """Give the names that lead to the same parameter and not to the same values."""
    first, *others = readings
    return [
        name
        for name, (target, how) in first.fates.items()
        if target and any(each.fates[name][0] == target and each.fates[name][1] != how for each in others)
    ]


def _open(seen: str, layouts: list[str], place: str) -> CheckpointError:
    return CheckpointError(
        f"which layout this is in is not certain: {seen}",
        expected="a recorded layout, or names that one layout alone has",
        hint=f"say it: --layout {' or '.join(sorted(layouts))} (--from-layout for convert)",
        file=place,
        field="layout",
    )
