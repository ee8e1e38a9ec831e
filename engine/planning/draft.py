"""Draft: what is found while one plan is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain

from weightloom.engine.errors import PlanError
from weightloom.engine.mapping.claims import Tie
from weightloom.engine.plan import Kept
from weightloom.engine.planning.binder import Binder, Wanted
from weightloom.engine.planning.families import bundles
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.groups import Bundle, Group, unchanged
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.planning.report import Ambiguous, Dropped, Incomplete, LoadReport, Mismatch, SetAside, Tied
from weightloom.engine.planning.resolve import Alike, Resolution, Resolved, Resolver
from weightloom.engine.planning.ties import tied_ends
from weightloom.engine.spec import TensorSpec


@dataclass
class Draft:
    """What is found while one plan is built; lives only that long.

    `specs` are those of the tensors, without a place on disk, one object for all tensors of one dtype and shape.
    `passed` are tensors that go through as they are, by the parameter that they become: each would be a group,
    and there are tens of thousands of them.
    """

    specs: Mapping[str, TensorSpec]
    fit: Fit
    resolver: Resolver
    ties: Sequence[Tie]
    binder: Binder
    passed: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    unexpected: dict[str, str] = field(default_factory=dict)
    mismatched: list[Mismatch] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    ambiguous: list[Ambiguous] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    lone_ends: list[str] = field(default_factory=list)

    def place_all(self, resolution: Resolution) -> None:
        """Give each name a group, or a reason why it has none."""
        alike = [one for one in resolution.alike if not self._drops(one.resolved, one.shape.names)]
        each = [one for one in resolution.each if not self._drops(one, (one.name,))]
        for one in alike:
            if not one.resolved.claims:
                self._place_alike(one)
        for resolved in each:
            if not resolved.claims:
                self._place_single(resolved)
        self._place_claimed([one for one in alike if one.resolved.claims], [one for one in each if one.claims])
        self._place_second_ends()

    def _drops(self, resolved: Resolved, names: Sequence[str]) -> bool:
        """Drop names, if all are dropped whatever the parameters are."""
        if resolved.drop is None or not self.fit.open:
            return False
        self._drop(resolved.drop, names)
        return True

    def _place_claimed(self, alike: Sequence[Alike], each: Sequence[Resolved]) -> None:
        """Place what converters claim; names of a group that makes no parameter are placed by themselves."""
        for one in alike:
            self._note_clash(one.resolved, one.shape.names)
        for resolved in each:
            self._note_clash(resolved, (resolved.name,))
        left: set[str] = set()
        for found in bundles(alike, each, self.resolver.rules):
            if not self._place_bundle(found):
                left.update(_everything(found))
        if left:
            for one in alike:
                for name in left.intersection(one.shape.names):
                    self._place_single(one.at(name))
            for resolved in each:
                if resolved.name in left:
                    self._place_single(resolved)

    def _place_second_ends(self) -> None:
        """A tensor that no parameter has a place for, but a tie knows: a second copy, or all that there is of one."""
        names = {renamed: name for name, renamed in sorted(self.unexpected.items())}
        ends = tied_ends(names, self.ties, self.fit)
        owned = {target for group in self.groups for target in group.targets} if ends else set()
        for renamed, other, rule in ends:
            name = names[renamed]
            is_there = other in owned or other in self.passed
            if name in self.unexpected and (is_there or self.fit.is_parameter(other)):
                del self.unexpected[name]
                self.kept.remove(Kept(name, "unexpected"))
                self._pass_through(name, renamed if is_there else other)
                if not is_there:
                    self.lone_ends.append(f"{name} stands for {other}, which is not in the file [{rule.title()}]")

    def _note_clash(self, resolved: Resolved, names: Iterable[str]) -> None:
        if len(resolved.claims) > 1:
            titles = tuple(self.resolver.rules[claim.converter].title() for claim in resolved.claims)
            self.ambiguous += [Ambiguous(name, titles, "converters of one scope claim it") for name in names]

    def _place_alike(self, one: Alike) -> None:
        """Tensors of one shape of name that go through as they are, where their new names are parameters."""
        names, renamed = one.shape.names, one.renamed
        targets = self.fit.names_of(renamed)
        if None in targets:
            for name in [name for name, target in zip(names, targets, strict=True) if target is None]:
                self._place_single(one.at(name))
        fresh = {target: name for name, target in zip(names, targets, strict=True) if target is not None}
        if len(fresh) == len(targets) - targets.count(None) and self.passed.keys().isdisjoint(fresh):
            self.passed |= fresh
        else:
            for name, target in zip(names, targets, strict=True):
                if target is not None:
                    self._pass_through(name, target)

    def _place_single(self, each: Resolved) -> None:
        """A tensor that goes through as it is: under its new name, else its own, else dropped or unexpected."""
        target = self.fit.name(each.renamed)
        rules = [self.resolver.rules[number] for number in each.acted]
        claims = [self.resolver.rules[claim.converter] for claim in each.claims]
        if target is not None:
            passed_by = claims
        elif self.fit.is_parameter(each.name):
            target, passed_by = each.name, rules + claims
        elif each.drop is not None:
            self._drop(each.drop, (each.name,))
            return
        else:
            self.unexpected[each.name] = each.renamed
            self.kept.append(Kept(each.name, "unexpected"))
            return
        self.set_aside += [SetAside(each.name, rule.title()) for rule in passed_by]
        self._pass_through(each.name, target)

    def _pass_through(self, name: str, target: str) -> None:
        if target in self.passed:
            self.groups.append(self._passing(name, target))
        else:
            self.passed[target] = name

    def _passing(self, name: str, target: str) -> Group:
        return Group(None, (name,), (target,), unchanged(self.specs[name]))

    def _drop(self, number: int, names: Sequence[str]) -> None:
        rule = self.resolver.rules[number]
        title = rule.title()
        self.dropped += [Dropped(name, title, rule.why) for name in names]
        self.kept += [Kept(name, "dropped") for name in names]

    def _place_bundle(self, found: Bundle) -> bool:
        """Bind a converter's group; False when none of its targets is a parameter."""
        rule = found.rule
        firsts = [found.target_name(i, 0 if rule.numbers(i) else None) for i in range(len(rule.templates))]
        targets = [self.fit.name(name) for name in firsts]
        if not any(targets):
            return False
        shown = tuple(target or first for target, first in zip(targets, firsts, strict=True))
        wanted = tuple(self.fit.spec(name) if not rule.numbers(i) else None for i, name in enumerate(shown))
        if self._is_broken(found, shown, wanted):
            return True
        try:
            self.groups.append(self.binder.group(found, wanted))
        except PlanError as error:
            record = Mismatch(shown[0], found.all_names, error.seen, error.expected or "", rule.title())
            self.mismatched.append(record)
            self.kept += [Kept(name, "mismatched") for name in found.all_names]
        return True

    def _is_broken(self, found: Bundle, shown: tuple[str, ...], wanted: Wanted) -> bool:
        """Report what a group lacks, and what it has twice or without a number."""
        lacking = found.missing_numbers(self.binder.needed(found, wanted))
        for index, numbers in lacking.items():
            pattern = found.rule.source_patterns[index]
            self.incomplete.append(Incomplete(found.title, pattern, numbers, shown, found.rule.title()))
        for first, second in found.clashes:
            self.ambiguous.append(Ambiguous(shown[0], (first, second), "two names for one place"))
        for name in found.unnumbered:
            why = "the star that counts is not a number"
            self.ambiguous.append(Ambiguous(name, (found.rule.title(),), why))
        broken = bool(lacking or found.clashes or found.unnumbered)
        if broken:
            self.kept += [Kept(name, "incomplete") for name in _everything(found)]
        return broken

    def settle_rivals(self) -> None:
        """Report parameters that two groups want, or one group twice; the first stays, others are kept aside."""
        self.take_apart(target for group in self.groups for target in group.targets)
        owner: dict[str, Group] = {}
        staying: list[Group] = []
        for group in sorted(self.groups, key=lambda group: group.sources):
            taken = _twice(group.targets) or next((target for target in group.targets if target in owner), None)
            if taken is None:
                owner.update(dict.fromkeys(group.targets, group))
                staying.append(group)
                continue
            claimants = (*(owner[taken].sources if taken in owner else ()), *group.sources)
            self.ambiguous.append(Ambiguous(taken, claimants, "two sources for one parameter"))
            self.kept += [Kept(name, "ambiguous") for name in group.sources]
        self.groups = staying

    def take_apart(self, targets: Iterable[str]) -> None:
        """Make groups of the tensors that go through to these parameters, for what needs a closer look."""
        for target in [target for target in targets if target in self.passed]:
            if target in self.passed:
                self.groups.append(self._passing(self.passed.pop(target), target))

    def targets(self) -> Iterator[str]:
        """Give what there is to reach and what is reached; some twice."""
        return chain(self.passed, (target for group in self.groups for target in group.targets), self.fit.params or ())

    def made(self, groups: Iterable[Group]) -> dict[str, TensorSpec]:
        """Give the specs of what these groups make, and of what goes through as it is."""
        passed = dict(zip(self.passed, map(self.specs.__getitem__, self.passed.values()), strict=True))
        return passed | {target: spec for group in groups for target, spec in group.made}

    def compare_with_parameters(self, groups: Sequence[Group]) -> None:
        """Report targets whose shape or class of dtype is not the parameter's."""
        if self.fit.open:
            return
        for group in groups:
            self._compare(group)
        for target, name in self.passed.items():
            if not self.fit.takes(target, self.specs[name]):
                self._compare(self._passing(name, target))

    def _compare(self, group: Group) -> None:
        for name, spec in group.made:
            wanted = self.fit.spec(name)
            if wanted is not None and not self.fit.agrees(spec, wanted):
                title = group.rule.title() if group.rule else None
                why = self.fit.differences(spec, wanted)
                self.mismatched.append(Mismatch(name, group.sources, str(spec), str(wanted), title, why))

    def report(self, tied: list[Tied], groups: list[Group], notes: Sequence[str]) -> LoadReport:
        """Put the findings in order."""
        made = {target for group in groups for target in group.targets} | {t.parameter for t in tied}
        return LoadReport(
            missing=tuple(sorted(n for n in self.fit.params or () if n not in self.passed and n not in made)),
            unexpected=tuple(sorted(self.unexpected)),
            mismatched=tuple(sorted(self.mismatched, key=lambda record: (record.parameter, record.sources))),
            incomplete=tuple(sorted(self.incomplete, key=astuple)),
            ambiguous=tuple(sorted(self.ambiguous, key=lambda record: (record.name, record.claimants))),
            dropped=tuple(sorted(self.dropped, key=lambda record: record.name)),
            tied=tuple(sorted(tied, key=lambda record: record.parameter)),
            lossy=tuple(lossy_records(groups)),
            set_aside=tuple(sorted(self.set_aside, key=lambda record: (record.name, record.rule))),
            notes=(*notes, *sorted(self.lone_ends)),
        )


def _everything(found: Bundle) -> tuple[str, ...]:
    return (*found.all_names, *found.unnumbered, *(name for _, name in found.clashes))


def _twice(names: tuple[str, ...]) -> str | None:
    return None if len(set(names)) == len(names) else next(name for name in names if names.count(name) > 1)
