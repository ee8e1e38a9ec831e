"""save_plan: how a model that was never loaded is written, by running the rules backwards.

Inverse converters first, then inverse renames from last to first. The names and shapes that come out are then
planned forwards: only if that gives exactly the parameters back is the answer good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.mapping.active import active_rules
from weightloom.engine.mapping.claims import Absent, Tie
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.prefix import PrefixChange
from weightloom.engine.mapping.rename_group import RenameGroup
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.ops.chain import Part
from weightloom.engine.plan import Plan
from weightloom.engine.planning.build import build_plan
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.groups import Bundle, bind, bundle
from weightloom.engine.planning.report import LeftOut
from weightloom.engine.planning.resolve import Claim
from weightloom.engine.planning.ties import second_ends
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program


def save_plan(
    rules: RuleSet | Sequence[Rule], params: Mapping[str, TensorSpec], config: Mapping[str, Any] | None = None
) -> Plan:
    """Plan the checkpoint that these parameters would be written to; `plan.save` writes it.

    Parameters that a rule calls absent are not written; `report.absent` names them.
    Prefix changes and legacy names are not written unless marked `always`, and no rule that is marked otherwise.
    Raises NotInvertible, naming the rule, when a rule has no inverse or when loading the result would not give the
    parameters back.
    """
    ruleset = rules if isinstance(rules, RuleSet) else RuleSet(rules)
    config = config or {}
    active = active_rules(ruleset, config, {})
    absent = left_out(active, params)
    params = {name: spec for name, spec in params.items() if name not in absent}
    shared = second_ends([rule for rule in active if isinstance(rule, Tie)], Fit(params, ruleset.base_model_prefix))
    written = {name: spec for name, spec in params.items() if name not in shared}
    writer = _Writer(active, config, written, ruleset.base_model_prefix)
    tensors, made_of = writer.tensors()
    plan = build_plan(Checkpoint.from_specs(tensors), ruleset, params, config=config)
    writer.verify(plan, made_of)
    notes = (*plan.report.notes, *_unwritten(active))
    return replace(plan, report=replace(plan.report, absent=tuple(absent.values()), notes=notes))


def left_out(rules: Sequence[Rule], params: Iterable[str]) -> dict[str, LeftOut]:
    """Give the parameters that rules say their layout has no room for, each with the rule and why."""
    asked = [rule for rule in rules if isinstance(rule, Absent)]
    deciding = ((name, next((rule for rule in asked if rule.selects_parameter(name)), None)) for name in sorted(params))
    return {name: LeftOut(name, rule.title(), rule.why) for name, rule in deciding if rule is not None}


def _unwritten(rules: Sequence[Rule]) -> list[str]:
    return [
        f"not written, for the model was never loaded: {rule.title()}"
        for rule in rules
        if isinstance(rule, PrefixChange) and not rule.always
    ]


@dataclass(frozen=True)
class _Writer:
    """Runs active rules backwards on one set of parameters."""

    rules: list[Rule]
    config: Mapping[str, Any]
    params: Mapping[str, TensorSpec]
    base: str
    _bound: dict[tuple[int, tuple[Part, ...]], tuple[Program, tuple[Part, ...]]] = field(default_factory=dict)

    def tensors(self) -> tuple[dict[str, TensorSpec], dict[str, str]]:
        """Give the checkpoint's tensors, and for each a parameter that it comes from.

        Raises NotInvertible when two parameters want one name.
        """
        found: dict[str, TensorSpec] = {}
        origin: dict[str, str] = {}
        unconverted = list(self._unconverted())
        finals = self._file_names([name for name, _, _ in unconverted])
        for final, (name, spec, made_of) in zip(finals, unconverted, strict=True):
            if final in found:
                raise NotInvertible(
                    f"{origin[final]} and {made_of} would both be written as {final}",
                    expected="a name of its own for each tensor",
                    tensor=made_of,
                    rule=self._blame(name),
                )
            found[final], origin[final] = spec, made_of
        return found, origin

    def _unconverted(self) -> Iterator[tuple[str, TensorSpec, str]]:
        """Undo the converters: (name before the converter, spec, a parameter it comes from)."""
        claimed: list[tuple[str, Claim]] = []
        inverses = {
            number: rule.inverse()
            for number, rule in enumerate(self.rules)
            if isinstance(rule, WeightConverter) and rule.always and self._concerns(rule)
        }
        for name, spec in sorted(self.params.items()):
            claim = self._claim(name, inverses)
            if claim is None:
                yield name, TensorSpec(spec.dtype or "F32", spec.shape), name
            else:
                claimed.append((name, claim))
        for found in bundle(claimed, [inverses.get(number, rule) for number, rule in enumerate(self.rules)]):
            yield from self._undone(found)

    def _concerns(self, rule: WeightConverter) -> bool:
        """Say whether a rule would be asked to write any parameter; one that would not need not have an inverse."""
        if rule.fidelity != "lossy":
            try:
                rule.inverse()
                return True
            except NotInvertible:
                pass
        shown = [
            template.render(dict.fromkeys(template.refs, "0"), ["0"] * template.stars) for template in rule.templates
        ]
        if any(text.strip("^.") in name for name in self.params for text in shown):
            rule.inverse()
            raise NotInvertible(
                f"{rule.summary()} is lossy: {rule.why or 'it says so'}",
                expected="an exact rule",
                rule=rule.title(),
            )
        return False

    def _claim(self, name: str, inverses: Mapping[int, WeightConverter]) -> Claim | None:
        for number, rule in inverses.items():
            for taken, seen in self._views(rule, name):
                found = rule.match(seen)
                if found is None or self._already(self.rules[number], seen, found[1].start, found[1].end):
                    continue
                index, span = found
                number_text = span.stars[rule.paired] if rule.collects(index) else None
                before, after = seen[: span.start], seen[span.end :]
                paired = span.stars[: rule.paired]
                return Claim(number, index, taken, before, after, span.captures, paired, number_text)
        return None

    def _undone(self, found: Bundle) -> Iterator[tuple[str, TensorSpec, str]]:
        rule = found.rule
        lacking = found.missing_numbers()
        if lacking:
            raise NotInvertible(
                f"{found.title}: {rule.source_patterns[next(iter(lacking))]} is no parameter",
                expected="all targets of the converter among the parameters",
                rule=rule.title(),
            )
        try:
            program, parts = self._bind(found)
        except PlanError as error:
            name, title = found.all_names[0], rule.title()
            seen = f"{name}: {error.seen} [{title}]"
            raise NotInvertible(seen, expected=error.expected, hint=error.hint, tensor=name, rule=title) from error
        outputs = iter(program.out_specs)
        for index, part in enumerate(parts):
            for number in range(len(part.specs)):
                name = found.target_name(index, number if rule.numbers(index) else None)
                yield name, next(outputs), found.all_names[0]

    @cached_property
    def _specs(self) -> dict[str, TensorSpec]:
        return {name: TensorSpec(spec.dtype or "F32", spec.shape) for name, spec in self.params.items()}

    def _bind(self, found: Bundle) -> tuple[Program, tuple[Part, ...]]:
        """Bind the ops once for all groups of one rule that are of the same shapes."""
        key = (found.claim.converter, parts := found.parts(self._specs))
        if key not in self._bound:
            self._bound[key] = bind(parts, found.rule, (None,) * len(found.rule.templates), self.config)
        return self._bound[key]

    def _file_names(self, names: list[str]) -> list[str]:
        """Undo the renames, last first; a group only if some name, as it stands then, leads its inverse."""
        for rule in reversed(self.rules):
            if not isinstance(rule, Renaming) or isinstance(rule, WeightConverter) or not rule.always:
                continue
            if isinstance(rule, RenameGroup):
                seen = (seen for name in names for _, seen in self._views(rule, name))
                if not rule.inverse().turns_on(seen):
                    continue
            inverse = rule.inverse()
            assert isinstance(inverse, Renaming)
            names = [self._unrenamed(rule, inverse, name) for name in names]
        return names

    def _unrenamed(self, rule: Renaming, inverse: Renaming, name: str) -> str:
        """Undo a rename, unless the name is already what the rename takes: a span that holds the match and more."""
        for taken, seen in self._views(rule, name):
            found = inverse.match(seen)
            if found is not None and not self._already(rule, seen, found[1].start, found[1].end):
                index, span = found
                return taken + seen[: span.start] + inverse.render(index, span) + seen[span.end :]
        return name

    def _already(self, rule: Rule, seen: str, start: int, end: int) -> bool:
        assert isinstance(rule, Renaming)
        found = rule.match(seen)
        if found is None:
            return False
        span = found[1]
        return span.start <= start and end <= span.end and (span.end - span.start) > (end - start)

    def _views(self, rule: Rule, name: str) -> list[tuple[str, str]]:
        if rule.scope is None:
            return [("", name)]
        split = rule.scope.strip(name, rule.scope.base not in self._first_parts)
        return [] if split is None else [split]

    @cached_property
    def _first_parts(self) -> frozenset[str]:
        """Everything that stands before a dot at the start of a parameter's name."""
        parts = (name.split(".") for name in self.params)
        return frozenset(".".join(each[:count]) for each in parts for count in range(1, len(each)))

    def verify(self, plan: Plan, made_of: Mapping[str, str]) -> None:
        """Refuse an answer that, loaded, does not give the parameters back."""
        report = plan.report
        strays = [n for n, p in made_of.items() if n not in plan.by_source or p not in plan.by_source[n].targets]
        if plan.ok() and not report.lossy and not strays:
            return
        names = (*report.missing, *report.unexpected, *(record.name for record in report.ambiguous))
        names = (*names, *(record.parameter for record in report.mismatched), *strays)
        first = names[0] if names else ""
        raise NotInvertible(
            "loading what would be written does not give the parameters back:\n" + str(report),
            expected="rules whose inverses undo them on these names",
            hint="mark the rule, or give it a pattern that tells both forms apart",
            tensor=first,
            rule=self._blame(first),
        )

    def _blame(self, name: str) -> str | None:
        """Name the rule that acts on a name, backwards or forwards."""
        for rule in self.rules:
            if isinstance(rule, Renaming) and any(
                rule.match(seen) or rule.inverse().match(seen)  # type: ignore[attr-defined]
                for _, seen in self._views(rule, name)
            ):
                return rule.title()
        return None
