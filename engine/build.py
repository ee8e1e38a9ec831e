"""build_plan: headers, rules and parameters to a plan. Reads no tensor data; never raises on a misfit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weightloom.engine.claims import Tie
from weightloom.engine.errors import PlanError
from weightloom.engine.fit import Fit
from weightloom.engine.groups import Bundle, Group, bind, bundle, needed, unchanged
from weightloom.engine.hints import hints
from weightloom.engine.lossy import lossy_records
from weightloom.engine.plan import Kept, Plan
from weightloom.engine.report import Ambiguous, Dropped, Incomplete, LoadReport, Mismatch, SetAside, Tied
from weightloom.engine.resolve import Claim, Resolved, Resolver, resolve
from weightloom.engine.rule import Rule
from weightloom.engine.ruleset import RuleSet
from weightloom.engine.spec import TensorSpec
from weightloom.engine.ties import tie, tied_ends

if TYPE_CHECKING:
    from weightloom.engine.checkpoint import Checkpoint


def build_plan(
    ckpt: Checkpoint,
    rules: RuleSet | Sequence[Rule],
    params: Mapping[str, TensorSpec] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
) -> Plan:
    """Map a checkpoint to parameters by rules; `params` None takes whatever the rules give.

    What does not fit is in the plan's report. Raises RuleError when a rule itself cannot be carried out
    (a condition that the config does not answer, a pattern without end).
    """
    ruleset = rules if isinstance(rules, RuleSet) else RuleSet(rules)
    config = config or {}
    active = [rule.bound(config) for rule in ruleset if rule.applies(config, ckpt.metadata)]
    resolver, resolved = resolve(sorted(ckpt.tensors), active)
    ties = [rule for rule in active if isinstance(rule, Tie)]
    draft = _Draft(ckpt.tensors, Fit(params, ruleset.base_model_prefix), resolver, config, ties)
    draft.place_all(resolved)
    draft.settle_rivals()
    groups, copies, tied, differing = tie(draft.groups, ties, draft.fit)
    draft.mismatched += differing
    draft.compare_with_parameters([*groups, *copies])
    made = {target: spec for group in groups for target, spec in _outputs(group)}
    shared = {record.parameter: made[record.other] for record in tied if draft.fit.is_parameter(record.parameter)}
    asleep = [rule for rule in ruleset if isinstance(rule, Tie) and rule not in ties]
    report = draft.report(tied, groups, ckpt.notes)
    return Plan(
        sources=ckpt.tensors,
        params={**made, **shared},
        groups=tuple(sorted(groups, key=lambda group: group.targets)),
        copies=tuple(sorted(copies, key=lambda group: group.targets)),
        kept=tuple(sorted(draft.kept, key=lambda kept: kept.name)),
        report=report,
        checkpoint=ckpt,
        resolver=resolver,
        hints=hints(report, params, asleep, config, len(ckpt.tensors)),
    )


def _twice(names: tuple[str, ...]) -> str | None:
    return None if len(set(names)) == len(names) else next(name for name in names if names.count(name) > 1)


def _outputs(group: Group) -> list[tuple[str, TensorSpec]]:
    return list(group.made)


@dataclass
class _Draft:
    """What is found while one plan is built; lives only that long."""

    tensors: Mapping[str, TensorSpec]
    fit: Fit
    resolver: Resolver
    config: Mapping[str, Any]
    ties: Sequence[Tie]
    groups: list[Group] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: list[Mismatch] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    ambiguous: list[Ambiguous] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    _bound: dict[Any, Any] = field(default_factory=dict)
    _needed: dict[Any, tuple[int, ...] | None] = field(default_factory=dict)

    def place_all(self, resolved: list[Resolved]) -> None:
        """Give each name a group, or a reason why it has none."""
        claimed: list[tuple[str, Claim]] = []
        by_name = {each.name: each for each in resolved}
        for each in resolved:
            if each.drop is not None and self.fit.open:
                self._drop(each.name, each.drop)
            elif each.claims:
                self._note_clash(each)
                claimed.append((each.name, each.claims[0]))
            else:
                self._place_single(each)
        for found in bundle(claimed, self.resolver.rules):
            if not self._place_bundle(found):
                for name in (*found.all_names, *found.unnumbered, *(name for _, name in found.clashes)):
                    self._place_single(by_name[name])
        self._place_second_ends(by_name)

    def _place_second_ends(self, by_name: Mapping[str, Resolved]) -> None:
        """A tensor that no parameter has a place for, but a tie knows as a second copy of one that is there."""
        owned = {target for group in self.groups for target in group.targets}
        names = {by_name[name].renamed: name for name in self.unexpected}
        for renamed, other, _ in tied_ends(sorted(names), self.ties, self.fit):
            name = names[renamed]
            if other in owned and name in self.unexpected:
                self.unexpected.remove(name)
                self.kept.remove(Kept(name, "unexpected"))
                self._pass_through(name, renamed)

    def _note_clash(self, each: Resolved) -> None:
        if len(each.claims) > 1:
            titles = tuple(self.resolver.rules[claim.converter].title() for claim in each.claims)
            self.ambiguous.append(Ambiguous(each.name, titles, "converters of one scope claim it"))

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
            self._drop(each.name, each.drop)
            return
        else:
            self.unexpected.append(each.name)
            self.kept.append(Kept(each.name, "unexpected"))
            return
        self.set_aside += [SetAside(each.name, rule.title()) for rule in passed_by]
        self._pass_through(each.name, target)

    def _pass_through(self, name: str, target: str) -> None:
        spec = self.tensors[name]
        self.groups.append(Group(None, (name,), (target,), unchanged(TensorSpec(spec.dtype, spec.shape))))

    def _drop(self, name: str, number: int) -> None:
        rule = self.resolver.rules[number]
        self.dropped.append(Dropped(name, rule.title(), rule.why))
        self.kept.append(Kept(name, "dropped"))

    def _place_bundle(self, found: Bundle) -> bool:
        """Bind a converter's group; False when none of its targets is a parameter."""
        rule = found.rule
        firsts = [found.target_name(i, 0 if rule.numbers(i) else None) for i in range(len(rule.templates))]
        targets = [self.fit.name(name) for name in firsts]
        if not any(targets):
            return False
        shown = tuple(target or first for target, first in zip(targets, firsts, strict=True))
        specs = tuple(self.fit.spec(name) if not rule.numbers(i) else None for i, name in enumerate(shown))
        if self._is_broken(found, shown, specs):
            return True
        try:
            program, parts = self._bind(found, specs)
            names = self._target_names(found, [len(part.specs) for part in parts])
        except PlanError as error:
            self._misfit(found, shown[0], error.seen, error.expected or "")
            return True
        self.groups.append(Group(rule, found.all_names, names, program))
        return True

    def _is_broken(self, found: Bundle, shown: tuple[str, ...], specs: tuple[TensorSpec | None, ...]) -> bool:
        """Report what a group lacks, and what it has twice or without a number."""
        key = (found.claim.converter, specs)
        if key not in self._needed:
            self._needed[key] = needed(found.rule, specs, self.config)
        lacking = found.missing_numbers(self._needed[key])
        for index, numbers in lacking.items():
            pattern = found.rule.source_patterns[index]
            self.incomplete.append(Incomplete(found.title, pattern, numbers, shown, found.rule.title()))
        for first, second in found.clashes:
            self.ambiguous.append(Ambiguous(shown[0], (first, second), "two names for one place"))
        for name in found.unnumbered:
            why = f"the star of {found.rule.source_patterns[found.claim.source]!r} is not a number"
            self.ambiguous.append(Ambiguous(name, (found.rule.title(),), why))
        broken = bool(lacking or found.clashes or found.unnumbered)
        if broken:
            names = (*found.all_names, *found.unnumbered, *(name for _, name in found.clashes))
            self.kept += [Kept(name, "incomplete") for name in names]
        return broken

    def _bind(self, found: Bundle, specs: tuple[TensorSpec | None, ...]) -> Any:
        parts = found.parts(self.tensors)
        key = (found.claim.converter, parts, specs)
        if key not in self._bound:
            self._bound[key] = bind(parts, found.rule, specs, self.config)
        return self._bound[key]

    def _target_names(self, found: Bundle, counts: list[int]) -> tuple[str, ...]:
        rule = found.rule
        if len(counts) != len(rule.templates):
            raise PlanError(
                f"the ops make {len(counts)} tensors",
                expected=f"one for each of {len(rule.templates)} targets",
            )
        names: list[str] = []
        for index, count in enumerate(counts):
            if not rule.numbers(index) and count != 1:
                raise PlanError(
                    f"the ops make {count} tensors for {rule.target_patterns[index]}",
                    expected="one, or a star in the target to number them",
                )
            numbers = range(count) if rule.numbers(index) else [None]
            names += [self.fit.required(found.target_name(index, number)) for number in numbers]
        return tuple(names)

    def _misfit(self, found: Bundle, parameter: str, seen: str, expected: str) -> None:
        self.mismatched.append(Mismatch(parameter, found.all_names, seen, expected, found.rule.title()))
        self.kept += [Kept(name, "mismatched") for name in found.all_names]

    def settle_rivals(self) -> None:
        """Report parameters that two groups want, or one group twice; the first stays, others are kept aside."""
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

    def compare_with_parameters(self, groups: Sequence[Group]) -> None:
        """Report targets whose shape or class of dtype is not the parameter's."""
        for group in groups:
            for name, spec in _outputs(group):
                wanted = self.fit.spec(name)
                if wanted is not None and not self.fit.agrees(spec, wanted):
                    title = group.rule.title() if group.rule else None
                    record = Mismatch(name, group.sources, str(spec), str(wanted), title)
                    self.mismatched.append(record)

    def report(self, tied: list[Tied], groups: list[Group], notes: Sequence[str]) -> LoadReport:
        """Put the findings in order."""
        made = {target for group in groups for target in group.targets} | {t.parameter for t in tied}
        return LoadReport(
            missing=tuple(name for name in self.fit.names() if name not in made),
            unexpected=tuple(sorted(self.unexpected)),
            mismatched=tuple(sorted(self.mismatched, key=lambda record: (record.parameter, record.sources))),
            incomplete=tuple(sorted(self.incomplete, key=lambda record: (record.group, record.pattern))),
            ambiguous=tuple(sorted(self.ambiguous, key=lambda record: (record.name, record.claimants))),
            dropped=tuple(sorted(self.dropped, key=lambda record: record.name)),
            tied=tuple(sorted(tied, key=lambda record: record.parameter)),
            lossy=tuple(lossy_records(groups)),
            set_aside=tuple(sorted(self.set_aside, key=lambda record: (record.name, record.rule))),
            notes=tuple(notes),
        )
