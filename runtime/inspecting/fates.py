"""What rules make of names alone: no checkpoint, no shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weightloom.engine.mapping.rule import Rule
    from weightloom.engine.mapping.ruleset import RuleSet
    from weightloom.engine.planning.groups import Bundle
    from weightloom.engine.planning.resolve import Resolved, Resolver


@dataclass(frozen=True, slots=True)
class Act:
    """One rule that acted on a name: what it made of it, and where it is written. A drop makes nothing."""

    kind: str
    results: tuple[str, ...]
    rule: str


@dataclass(frozen=True, slots=True)
class Fate:
    """A name and the rules that acted on it, in order; none leaves it as it is.

    `problem` says why the converter at its end cannot work on these names (a source that is lacking, a clash).
    """

    name: str
    acts: tuple[Act, ...]
    problem: str | None = None

    @property
    def results(self) -> tuple[str, ...]:
        """What becomes of the name."""
        return self.acts[-1].results if self.acts else (self.name,)


def fates(names: Sequence[str], rules: RuleSet, config: Mapping[str, Any]) -> tuple[Fate, ...]:
    """Say what becomes of each name. Raises RuleError when the config does not answer a rule's condition."""
    from weightloom.engine.mapping.active import active_rules
    from weightloom.engine.planning.groups import bundle
    from weightloom.engine.planning.resolve import resolve

    active = active_rules(rules, config, {})
    resolver, resolved = resolve(sorted(set(names)), active)
    by_name = {each.name: each for each in resolved}
    claimed = [(each.name, each.claims[0]) for each in resolved if each.claims]
    bundles = {name: found for found in bundle(claimed, active) for name in found.all_names}
    return tuple(_fate(by_name[name], resolver, active, bundles.get(name)) for name in names)


def _fate(resolved: Resolved, resolver: Resolver, rules: Sequence[Rule], found: Bundle | None) -> Fate:
    acts = [
        Act(rules[number].kind, (after,), rules[number].title()) for number, _, after in resolver.trace(resolved.name)
    ]
    if resolved.drop is not None:
        acts.append(Act("drop", (), rules[resolved.drop].title()))
    elif found is not None:
        acts.append(Act("convert", tuple(_targets(found)), found.rule.title()))
    clash = "several converters claim it" if len(resolved.claims) > 1 else None
    return Fate(resolved.name, tuple(acts), clash or (_lack(found) if found else None))


def _targets(found: Bundle) -> Iterator[str]:
    for index in range(len(found.rule.templates)):
        if found.rule.numbers(index):
            yield f"{found.target_name(index, 0)} and so on"
        else:
            yield found.target_name(index, None)


def _lack(found: Bundle) -> str | None:
    lacking = found.missing_numbers()
    if not lacking:
        return None
    index, numbers = next(iter(lacking.items()))
    what = f"number {', '.join(map(str, numbers[:8]))}" if numbers else "no name at all"
    return f"the converter lacks {what} for {found.rule.source_patterns[index]}"
