"""A name through the renames: where a checkpoint name goes, before any group is formed.

This is the slow path, which decides what is right. `alike` does the same for all names of one shape at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weightloom.engine.mapping.claims import Drop
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.patterns import Span
from weightloom.engine.mapping.rename_group import RenameGroup
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule, Scope


@dataclass(frozen=True, slots=True)
class Claim:
    """A converter's hold on a name: which source matched, and the identity of the group it belongs to."""

    converter: int
    source: int
    taken: str
    before: str
    after: str
    captures: tuple[tuple[int, str], ...]
    paired: tuple[str, ...]
    number: str | None

    @property
    def key(self) -> tuple[object, ...]:
        """What the names of one group share."""
        return (self.converter, self.taken, self.before, self.after, self.captures, self.paired)


@dataclass(frozen=True, slots=True)
class Resolved:
    """One checkpoint name after the renames: rules that acted, a rule that may drop it, converters that claim it."""

    name: str
    renamed: str
    acted: tuple[int, ...]
    drop: int | None
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule needs to know of all names: whether it is on, and whether it sees names without the base prefix."""

    on: bool = True
    takes_unprefixed: bool = True


@dataclass(frozen=True, slots=True)
class _State:
    """A name on its way through the rules."""

    name: str
    current: str
    acted: tuple[int, ...] = ()
    drop: int | None = None


@dataclass(frozen=True)
class Resolver:
    """The active rules with their conditions on one set of names; resolves a single name on demand (`trace`)."""

    rules: tuple[Rule, ...]
    conditions: tuple[Condition, ...]

    def trace(self, name: str) -> list[tuple[int, str, str]]:
        """Give (rule number, before, after) for each rename that acts on a name."""
        found: list[tuple[int, str, str]] = []
        current = name
        for number, rule in enumerate(self.rules):
            if isinstance(rule, Renaming) and not isinstance(rule, WeightConverter):
                after = _renamed(rule, self.conditions[number], current)
                if after is not None and after != current:
                    found.append((number, current, after))
                    current = after
        return found


def resolve_each(names: Sequence[str], rules: Sequence[Rule]) -> tuple[Resolver, list[Resolved]]:
    """Resolve every name on its own: the slow path, which decides what is right."""
    resolver, states = _through_renames(list(names), rules)
    return resolver, [_with_claims(state, resolver) for state in states]


def _through_renames(names: list[str], rules: Sequence[Rule]) -> tuple[Resolver, list[_State]]:
    states = [_State(name, name) for name in names]
    conditions: list[Condition] = []
    for number, rule in enumerate(rules):
        condition = Condition()
        if not isinstance(rule, WeightConverter):
            condition = _condition(rule, [state.current for state in states])
            states = [_step(state, number, rule, condition) for state in states]
        else:
            condition = Condition(takes_unprefixed=True)
        conditions.append(condition)
    currents = [state.current for state in states]
    for number, rule in enumerate(rules):
        if isinstance(rule, WeightConverter):
            conditions[number] = _condition(rule, currents)
    return Resolver(tuple(rules), tuple(conditions)), states


def _condition(rule: Rule, names: Sequence[str]) -> Condition:
    unprefixed = _takes_unprefixed(rule.scope, names)
    if not isinstance(rule, RenameGroup):
        return Condition(takes_unprefixed=unprefixed)
    seen = (_inside(rule.scope, name, unprefixed) for name in names)
    return Condition(rule.turns_on(split[1] for split in seen if split is not None), unprefixed)


def _takes_unprefixed(scope: Scope | None, names: Sequence[str]) -> bool:
    if scope is None or scope.prefix or not scope.base:
        return True
    return not any(name.startswith(scope.base + ".") for name in names)


def _inside(scope: Scope | None, name: str, takes_unprefixed: bool) -> tuple[str, str] | None:
    return ("", name) if scope is None else scope.strip(name, takes_unprefixed)


def _renamed(rule: Renaming, condition: Condition, name: str) -> str | None:
    split = _inside(rule.scope, name, condition.takes_unprefixed) if condition.on else None
    if split is None:
        return None
    after = rule.rewrite(split[1])
    return None if after is None else split[0] + after


def _step(state: _State, number: int, rule: Rule, condition: Condition) -> _State:
    if isinstance(rule, Renaming):
        after = _renamed(rule, condition, state.current)
        if after is None or after == state.current:
            return state
        return _State(state.name, after, (*state.acted, number), state.drop)
    if isinstance(rule, Drop) and state.drop is None:
        split = _inside(rule.scope, state.current, condition.takes_unprefixed)
        if split is not None and rule.selects(split[1]):
            return _State(state.name, state.current, state.acted, number)
    return state


def _with_claims(state: _State, resolver: Resolver) -> Resolved:
    """The first converter that matches claims a name; others of the same scope that match are kept: a clash."""
    claims: list[Claim] = []
    for number, rule in enumerate(resolver.rules):
        if not isinstance(rule, WeightConverter):
            continue
        if claims and rule.scope != resolver.rules[claims[0].converter].scope:
            continue
        claim = _claim(number, rule, resolver.conditions[number], state.current)
        if claim is not None:
            claims.append(claim)
    return Resolved(state.name, state.current, state.acted, state.drop, tuple(claims))


def _claim(number: int, rule: WeightConverter, condition: Condition, name: str) -> Claim | None:
    split = _inside(rule.scope, name, condition.takes_unprefixed)
    found = None if split is None else rule.match(split[1])
    if split is None or found is None:
        return None
    index, span = found
    taken, seen = split
    collected = _collected(rule, index, span)
    return Claim(
        number,
        index,
        taken,
        seen[: span.start],
        seen[span.end :],
        span.captures,
        span.stars[: rule.paired],
        collected,
    )


def _collected(rule: WeightConverter, index: int, span: Span) -> str | None:
    return span.stars[rule.paired] if rule.collects(index) else None
