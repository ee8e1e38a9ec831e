"""Two plans as one, where the second is built on what the first makes of some of a checkpoint's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import PlanError
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.plan import Kept, Plan
from weightloom.engine.planning.composing.joining import joined
from weightloom.engine.planning.groups import Group, unchanged
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.planning.report import LoadReport
from weightloom.engine.views.program import Program, Step
from weightloom.engine.views.whole_rows import tearing_step

WORDS = "U32"


@dataclass(frozen=True)
class Through:
    """`front`: the group behind each name that `later` takes and the checkpoint does not have as it is.

    Names that end in one of `companions` hold what belongs to packed words.
    """

    ckpt: Checkpoint
    front: Mapping[str, Group]
    later: Plan
    companions: tuple[str, ...]
    _known: dict[Any, tuple[Program, Rule | None]] = field(default_factory=dict)
    _torn: dict[Any, Step | None] = field(default_factory=dict)

    def plan(self) -> Plan:
        """Give the plan from the checkpoint's tensors to the later one's parameters."""
        groups = tuple(sorted(self._groups(self.later.groups), key=lambda group: group.targets))
        return replace(
            self.later,
            sources=self.ckpt.tensors,
            groups=groups,
            copies=tuple(self._groups(self.later.copies)),
            kept=tuple(sorted(self._kept(), key=lambda kept: kept.name)),
            report=self._report(groups),
            checkpoint=self.ckpt,
        )

    def _groups(self, groups: Iterable[Group]) -> Iterator[Group]:
        lists: dict[int, list[Group]] = {}
        for group in groups:
            keys = self._modules(group)
            if not keys:
                yield group
                continue
            met, *others = {id(found): found for key in keys if (found := lists.get(key))}.values() or ([],)
            moved = [group, *(each for other in others for each in other)]
            met += moved
            lists |= {key: met for each in moved for key in self._modules(each)}
        for met in {id(met): met for met in lists.values()}.values():
            yield self._joined(met)

    def _modules(self, group: Group) -> list[int]:
        return [id(found) for name in group.sources if (found := self.front.get(name)) is not None]

    def _joined(self, right: list[Group]) -> Group:
        """Join groups that take parts of the same modules with those modules' own."""
        names = [name for group in right for name in group.sources]
        left = list({id(found): found for found in map(self._behind, names)}.values())
        self._check_whole(left, right, names)
        key = (_wiring(left, names), *((id(group.program), id(group.rule)) for group in (*left, *right)))
        if key not in self._known:
            self._known[key] = joined(left, right).program, _rule(left, right)
        program, rule = self._known[key]
        sources = tuple(name for group in left for name in group.sources)
        targets = tuple(name for group in right for name in group.targets)
        return Group(rule, sources, targets, program)

    def _behind(self, name: str) -> Group:
        found = self.front.get(name)
        return found or Group(None, (name,), (name,), unchanged(self.ckpt.logical[name]))

    def _check_whole(self, left: Sequence[Group], right: Sequence[Group], names: Sequence[str]) -> None:
        lost = {target for group in left for target in group.targets}.symmetric_difference(names)
        if lost:
            raise PlanError(
                f"{min(lost)} is part of a quantized module, and does not go where the rest of it goes",
                expected="rules that lead codes and scales the same way",
                tensor=min(lost),
            )
        for group in right:
            packed = [self._is_packed(name, group.program.in_specs[at].dtype) for at, name in enumerate(group.sources)]
            step = self._tearing(group.program, packed)
            if step is not None:
                name = group.sources[packed.index(True)]
                raise PlanError(
                    f"{name} is packed, and {type(step).__name__} would take its rows apart",
                    expected="rules that move whole rows of a packed tensor",
                    hint="load it dequantized",
                    tensor=name,
                    rule=group.rule.title() if group.rule else None,
                )

    def _tearing(self, program: Program, packed: Sequence[bool]) -> Step | None:
        """Give the step of a program that takes packed rows apart; layers that are alike share a program."""
        key = (id(program), tuple(packed))
        if key not in self._torn:
            self._torn[key] = tearing_step(program, packed)
        return self._torn[key]

    def _is_packed(self, name: str, dtype: str | None) -> bool:
        return name in self.front and (dtype == WORDS or name.endswith(self.companions))

    def _kept(self) -> Iterator[Kept]:
        found = {kept.name: kept for kept in self.later.kept}
        yield from (kept for name, kept in found.items() if name not in self.front)
        behind = {id(self.front[name]): (self.front[name], kept) for name, kept in found.items() if name in self.front}
        for group, kept in behind.values():
            yield from (Kept(name, kept.reason) for name in group.sources)

    def _report(self, groups: Iterable[Group]) -> LoadReport:
        report = self.later.report
        return replace(
            report,
            unexpected=tuple(sorted(self._files(report.unexpected))),
            mismatched=tuple(replace(each, sources=self._files(each.sources)) for each in report.mismatched),
            dropped=tuple(replace(each, name=name) for each in report.dropped for name in self._files((each.name,))),
            lossy=tuple(lossy_records(groups)),
            notes=(*self.ckpt.notes, *report.notes),
        )

    def _files(self, names: Iterable[str]) -> tuple[str, ...]:
        """Give the file's tensors behind names."""
        found = (self.front[name].sources if name in self.front else (name,) for name in names)
        return tuple(dict.fromkeys(name for names in found for name in names))


def _wiring(left: Sequence[Group], names: Sequence[str]) -> tuple[int, ...]:
    """Say which of the tensors between two plans each of `names` is, by number."""
    places = {name: at for at, name in enumerate(target for group in left for target in group.targets)}
    return tuple(places[name] for name in names)


def _rule(left: Sequence[Group], right: Sequence[Group]) -> Rule | None:
    """Give the rule of a joined group: the model's with the modules' ops before its own, else the modules' own."""
    front = next((group.rule for group in left if isinstance(group.rule, WeightConverter)), None)
    later = next((group.rule for group in right if isinstance(group.rule, WeightConverter)), None)
    if front is None or later is None:
        return later or front
    return later.replace(operations=(*front.operations, *later.operations))
