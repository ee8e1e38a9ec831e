"""Names through the renames, by shape: one representative is resolved for all names of its shape.

The digits of a name are abstracted to stand-in numbers, the rules run on that one name, and the result is a form to
fill with each name's own numbers. Numbers that a rule spells out stay as they are. Names that a rule may tell apart by
other digits, and names in which a stand-in ends up next to another digit, are resolved one by one. The outcome is
the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.shapes import Form, Shape, by_shape, form, numbers_of, stand_ins, touches
from weightloom.engine.mapping.sight import Sight, sight
from weightloom.engine.planning.resolved import Claim as Claim
from weightloom.engine.planning.resolved import Resolved as Resolved
from weightloom.engine.planning.resolved import Resolver as Resolver
from weightloom.engine.planning.resolved import resolve_each as resolve_each


@dataclass(frozen=True)
class Alike:
    """Names of one shape, with what became of the representative that stands for them."""

    shape: Shape
    resolved: Resolved

    @property
    def renamed(self) -> Sequence[str]:
        """What each name of the shape becomes."""
        same = self.resolved.renamed == self.shape.representative
        return self.shape.names if same else self._renamed.fill_all(self.shape)

    def at(self, name: str) -> Resolved:
        """Give what became of one name of the shape."""
        numbers = numbers_of(name)
        claims = tuple([claim.fill(numbers) for claim in self.claims])
        return Resolved(name, self._renamed.fill(numbers), self.resolved.acted, self.resolved.drop, claims)

    @cached_property
    def claims(self) -> tuple[ClaimForm, ...]:
        """The claims on any name of the shape."""
        return tuple(map(ClaimForm.of, self.resolved.claims))

    @cached_property
    def _renamed(self) -> Form:
        return form(self.resolved.renamed)


@dataclass(frozen=True, slots=True)
class ClaimForm:
    """A claim on a representative, ready to be filled with a name's numbers."""

    claim: Claim
    texts: tuple[Form, ...]
    number: Form | None

    @classmethod
    def of(cls, claim: Claim) -> ClaimForm:
        """Turn a claim on a representative into a form."""
        texts = (claim.taken, claim.before, claim.after, *(text for _, text in claim.captures), *claim.paired)
        return cls(claim, tuple(map(form, texts)), None if claim.number is None else form(claim.number))

    @property
    def family(self) -> tuple[object, ...]:
        """What the claims of one group share, whatever the numbers in it are."""
        numbers = tuple(number for number, _ in self.claim.captures)
        return (self.claim.converter, numbers, *(text.text for text in self.texts))

    def fill(self, numbers: Sequence[str]) -> Claim:
        """Give the claim on the name with these numbers."""
        number = None if self.number is None else self.number.fill(numbers)
        return self._with([text.fill(numbers) for text in self.texts], number)

    def at(self, key: Sequence[str]) -> Claim:
        """Give the claim of a group, without a number of its own, from what goes into the holes of `texts`."""
        values = iter(key)
        return self._with([text.text % tuple(islice(values, len(text.holes))) for text in self.texts], None)

    def _with(self, texts: Sequence[str], number: str | None) -> Claim:
        taken, before, after, *rest = texts
        claim, count = self.claim, len(self.claim.captures)
        captures = tuple((n, text) for (n, _), text in zip(claim.captures, rest, strict=False))
        return Claim(claim.converter, claim.source, taken, before, after, captures, tuple(rest[count:]), number)


@dataclass(frozen=True)
class Resolution:
    """All names of a checkpoint after the renames: those that are alike together, the others one by one."""

    resolver: Resolver
    alike: tuple[Alike, ...]
    each: tuple[Resolved, ...]

    def all(self) -> Iterator[Resolved]:
        """Give what became of every name."""
        for alike in self.alike:
            yield from map(alike.at, alike.shape.names)
        yield from self.each


def resolve(names: Sequence[str], rules: Sequence[Rule]) -> tuple[Resolver, list[Resolved]]:
    """Give what becomes of each name; the answer does not depend on their order."""
    found = by_likeness(names, rules)
    by_name = {each.name: each for each in found.all()}
    return found.resolver, [by_name[name] for name in names]


def by_likeness(names: Sequence[str], rules: Sequence[Rule]) -> Resolution:
    """Resolve all names, by shape where that gives the same."""
    seen = sight(rules)
    shapes, each = by_shape(names, seen.behind)
    while True:
        resolver, found = resolve_each([*(shape.representative for shape in shapes), *each], rules)
        alike = [Alike(shape, resolved) for shape, resolved in zip(shapes, found, strict=False)]
        fates: list[Fate] = [_fate(one, resolver, seen) for one in alike]
        if not any(fates):
            return Resolution(resolver, tuple(alike), tuple(found[len(shapes) :]))
        each += [name for one, fate in zip(alike, fates, strict=True) if fate == "each" for name in one.shape.names]
        shapes = [shape for one, fate in zip(alike, fates, strict=True) for shape in _parted(one.shape, fate, seen)]


def one_by_one(names: Sequence[str], rules: Sequence[Rule]) -> Resolution:
    """Resolve every name on its own: slow, and right whatever the rules are."""
    resolver, found = resolve_each(names, rules)
    return Resolution(resolver, (), tuple(found))


Fate = Literal["part", "each"] | None


def _parted(shape: Shape, fate: Fate, seen: Sight) -> Sequence[Shape]:
    """Give the shapes that a shape becomes: itself, its parts, or none where its names are resolved by themselves."""
    if fate == "part":
        return by_shape(shape.names, seen.anywhere)[0]
    return () if fate == "each" else (shape,)


def _fate(one: Alike, resolver: Resolver, seen: Sight) -> Fate:
    """Say whether the names of a shape have to be resolved by themselves, or parted by more numbers; else None."""
    steps = resolver.trace(one.shape.representative) if one.resolved.acted else []
    afters = [after for _, _, after in steps]
    if any(map(touches, afters)) or any(map(seen.may_see, (one.shape.representative, *afters))):
        return "each"
    places = [place for after in afters for place in stand_ins(after)]
    return None if all(seen.behind(before) <= one.shape.spelt[place] for before, place in places) else "part"
