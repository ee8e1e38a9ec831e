"""Groups: which tensors go through which program to which parameters.

First the names that a converter claims are collected by what they share (`Bundle`); then each bundle is checked
for completeness and bound to the shapes at hand (`Group`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any, cast

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.ops.base import ConversionOp
from weightloom.engine.ops.chain import Chain, OpContext, Part, Target
from weightloom.engine.planning.resolve import Claim
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program

# Names are others' data: `experts.999999999999.w` must not be counted up to.
MOST_DIGITS = 18
_MOST_GAPS = 1000


@dataclass(frozen=True, slots=True)
class Group:
    """Source tensors, in slot order, through a program to target tensors; `rule` None means as they are.

    The program may take more slots than there are sources (fillers) and give more than there are targets
    (remainders). Of an inverse, `forward` is the group that it undoes: it says where its fillers come from.
    """

    rule: Rule | None
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    program: Program
    forward: Group | None = field(default=None, compare=False, repr=False)

    @property
    def taken(self) -> tuple[tuple[str, TensorSpec], ...]:
        """The sources with their specs; no fillers."""
        return tuple(zip(self.sources, self.program.in_specs, strict=False))

    @property
    def made(self) -> tuple[tuple[str, TensorSpec], ...]:
        """The targets with their specs; no remainders."""
        return tuple(zip(self.targets, self.program.out_specs, strict=False))

    def inverse(self) -> Group:
        """Swap sources and targets and invert the program; raises NotInvertible.

        Of a rule that keeps, a step that has no inverse is answered by the source's own bytes.
        """
        keeps = self.rule is not None and self.rule.fidelity == "keeps"
        program = self.program.keeping_inverse() if keeps else self.program.inverse()
        return Group(self.rule, self.targets, self.sources, program, self)


@dataclass(frozen=True)
class Bundle:
    """The names that one converter claims in one place: for each source pattern a name by number.

    A pattern that does not collect has its one name under number None. `clashes` are names that want a place
    that is taken ("01" and "1").
    """

    rule: WeightConverter
    claim: Claim
    names: Mapping[int, Mapping[int | None, str]]
    clashes: tuple[tuple[str, str], ...]
    unnumbered: tuple[str, ...]

    @cached_property
    def slots(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """For each source pattern that has names, its index and its names in order."""
        return tuple((index, _in_order(names)) for index, names in sorted(self.names.items()))

    @property
    def all_names(self) -> tuple[str, ...]:
        """Every name in it, in slot order."""
        return tuple(chain.from_iterable(names for _, names in self.slots))

    @property
    def title(self) -> str:
        """Where it is: the text around the span."""
        claim = self.claim
        where = f"{claim.taken}{claim.before}"
        stars = f" ({', '.join(claim.paired)})" if claim.paired else ""
        return (where.rstrip(".") or "(root)") + stars

    def missing_numbers(self, wanted: Sequence[int] | None = None) -> dict[int, tuple[int, ...]]:
        """Give, by source pattern, the numbers it lacks (the first 1000); () for one that lacks everything.

        `wanted` is how many tensors of each pattern the targets need; by default as many as the highest number says.
        """
        rule = self.rule
        wanted = wanted or (self._highest + 1,) * len(rule.sources)
        lacking: dict[int, tuple[int, ...]] = {}
        for index in range(len(rule.sources)):
            names = self.names.get(index, {})
            if not names:
                if not rule.may_lack(index):
                    lacking[index] = ()
            elif rule.collects(index) and not _are_first(names, wanted[index]):
                lacking[index] = tuple(islice((n for n in range(wanted[index]) if n not in names), _MOST_GAPS))
        return lacking

    @property
    def _highest(self) -> int:
        """The highest number of any name; -1 without one."""
        listed = (names for index, names in self.names.items() if self.rule.collects(index))
        return max((max(cast("Mapping[int, str]", names), default=-1) for names in listed), default=-1)

    def parts(self, tensors: Mapping[str, TensorSpec]) -> tuple[Part, ...]:
        """Give the parts that the ops start from."""
        return tuple(
            Part(self.rule.source_patterns[index], tuple([tensors[name].logical() for name in names]))
            for index, names in self.slots
        )

    def target_name(self, index: int, number: int | None) -> str:
        """Write the name of target `index`, or of its item `number`."""
        claim = self.claim
        stars = claim.paired if number is None else (*claim.paired, str(number))
        text = self.rule.templates[index].render(dict(claim.captures), stars)
        return f"{claim.taken}{claim.before}{text}{claim.after}"


def bundle(claims: Iterable[tuple[str, Claim]], rules: Sequence[Rule]) -> list[Bundle]:
    """Collect claimed names by what they share."""
    found: dict[tuple[object, ...], list[tuple[str, Claim]]] = {}
    for name, claim in claims:
        found.setdefault(claim.key, []).append((name, claim))
    return [_bundled(members, rules) for members in found.values()]


def _bundled(members: list[tuple[str, Claim]], rules: Sequence[Rule]) -> Bundle:
    rule = rules[members[0][1].converter]
    assert isinstance(rule, WeightConverter)
    names: dict[int, dict[int | None, str]] = {}
    clashes: list[tuple[str, str]] = []
    unnumbered: list[str] = []
    for name, claim in sorted(members, key=lambda member: member[0]):
        number = None
        if claim.number is not None:
            if not (claim.number.isascii() and claim.number.isdigit() and len(claim.number) <= MOST_DIGITS):
                unnumbered.append(name)
                continue
            number = int(claim.number)
        slots = names.setdefault(claim.source, {})
        if number in slots:
            clashes.append((slots[number], name))
        else:
            slots[number] = name
    return Bundle(rule, members[0][1], names, tuple(clashes), tuple(unnumbered))


def bind(
    parts: tuple[Part, ...],
    rule: WeightConverter,
    targets: tuple[TensorSpec | None, ...],
    config: Mapping[str, Any],
) -> tuple[Program, tuple[Part, ...]]:
    """Lower a converter's ops on these parts; raises PlanError where the ops do not fit them."""
    labelled = tuple(Target(text, spec) for text, spec in zip(rule.target_patterns, targets, strict=True))
    chain = Chain(parts, OpContext(labelled, config))
    for number, op in enumerate(rule.operations):
        chain.context = OpContext(_before(rule.operations[number + 1 :], labelled, config), config)
        op.lower(chain)
    return chain.program(), chain.parts


def needed(
    rule: WeightConverter, targets: tuple[TensorSpec | None, ...], config: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """Give how many tensors of each source pattern the targets are made of; None where their specs do not tell."""
    known = [spec for spec in targets if spec is not None]
    if len(known) != len(targets):
        return None
    try:
        back = rule.inverse()
        parts = tuple(Part(text, (spec,)) for text, spec in zip(back.source_patterns, known, strict=True))
        _, made = bind(parts, back, (None,) * len(back.templates), config)
    except (PlanError, RuleError):
        return None
    counts = tuple(len(part.specs) for part in made)
    return counts if len(counts) == len(rule.sources) else None


def _before(
    later: Sequence[ConversionOp], targets: tuple[Target, ...], config: Mapping[str, Any]
) -> tuple[Target, ...]:
    """What an op should give for the ops after it to give the targets; specs that nothing tells are left out."""
    known = [target.spec for target in targets if target.spec is not None]
    if not later or len(known) != len(targets):
        return targets
    back = Chain(
        [Part(each.label, (spec,)) for each, spec in zip(targets, known, strict=True)], OpContext(targets, config)
    )
    try:
        for op in reversed(later):
            op.inverse().lower(back)
    except (PlanError, RuleError):
        return tuple(Target(each.label) for each in targets)
    if [len(part.specs) for part in back.parts] != [1] * len(targets):
        return tuple(Target(each.label) for each in targets)
    return tuple(Target(each.label, part.specs[0]) for each, part in zip(targets, back.parts, strict=True))


@lru_cache(maxsize=4096)
def unchanged(spec: TensorSpec) -> Program:
    """Give the program of a tensor that goes through as it is."""
    return Program((spec,), ())


def _are_first(names: Mapping[int | None, str], count: int) -> bool:
    """Say whether there is a name for each number below `count`."""
    return len(names) >= count and (list(names) == list(range(count)) or all(n in names for n in range(count)))


def _in_order(names: Mapping[int | None, str]) -> tuple[str, ...]:
    """Give names by number; a source either collects all its names or has one, without a number."""
    if list(names) == list(range(len(names))):
        return tuple(names.values())
    order = sorted(names, key=lambda number: -1 if number is None else number)
    return tuple(map(names.__getitem__, order))
