"""Renaming: the fewest renames that lead every name where it belongs, tried out before they are believed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from weightloom.engine import WeightRenaming
from weightloom.engine.planning.resolve import Resolver, resolve
from weightloom.rules.proposing.changes import Change, Rename, change_of
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.proposal import ProposedRule
from weightloom.rules.proposing.templates import STAR, Template

_TRIES = 12
_REFERENCE = re.compile(r"\\\d")


def renames_of(links: Sequence[Link], others: Sequence[Template]) -> tuple[tuple[ProposedRule, ...], tuple[Link, ...]]:
    """Give renames that carry out plain links, and the links that they cannot; `others` are names beside them.

    A rename that acts where it should not is widened by the part beside it, until it does no more.
    """
    changes = [change_of(link) for link in links]
    for _ in range(_TRIES):
        rules = _ordered(changes)
        wrong = _tried(rules, changes)
        if not wrong:
            return tuple(_proposed(rules, changes)), ()
        widened = [_without(change, wrong) for change in changes]
        if [each.spans for each in widened] == [each.spans for each in changes]:
            break
        changes = widened
    lost = [change for change in changes if _leads_elsewhere(change, _ordered(changes))]
    kept = [change for change in changes if change not in lost]
    return tuple(_proposed(_ordered(kept), kept)), tuple(change.link for change in lost)


def _ordered(changes: Iterable[Change]) -> list[Rename]:
    """Give each rename once, those with the most parts first: the narrower must not take from the wider.

    One that would act on what another has just made goes before that other.
    """
    found = {rename: None for change in changes for rename in change.renames}
    rules = sorted(found, key=lambda rename: -rename[0].count(r"\."))
    rewrites = [WeightRenaming(*rename) for rename in rules]
    made, taken = [_text(target) for _, target in rules], [_text(source) for source, _ in rules]
    order: list[int] = []
    for number in range(len(rules)):
        later = [at for at, before in enumerate(order) if _undoes(rewrites[number], made[before], taken[before])]
        order.insert(later[0] if later else len(order), number)
    return [rules[number] for number in order]


def _undoes(rule: WeightRenaming, made: str, taken: str) -> bool:
    """Say whether a rename acts on what another made of a name, and not on the name itself."""
    return rule.match(made) is not None and rule.match(taken) is None


def _text(pattern: str) -> str:
    """Give a text that a pattern, or a target, stands for."""
    return _REFERENCE.sub("7", pattern.replace(r"(\d+)", "7").removeprefix("^").replace("\\.", "."))


def _tried(rules: Sequence[Rename], changes: Sequence[Change]) -> set[Rename]:
    """Give the renames that act where they should not, or, where all that act should, those that do."""
    resolver, found = _run(rules, [_example(change, True) for change in changes])
    wrong: set[Rename] = set()
    for change, renamed in zip(changes, found, strict=True):
        if renamed == _example(change, False):
            continue
        acted = [rules[number] for number, _, _ in resolver.trace(_example(change, True))]
        strange = [rename for rename in acted if rename not in change.renames]
        wrong |= set(strange or acted or change.renames)
    return wrong


def _run(rules: Sequence[Rename], names: Sequence[str]) -> tuple[Resolver, list[str]]:
    resolver, found = resolve(names, [WeightRenaming(source, target) for source, target in rules])
    return resolver, [each.renamed for each in found]


def renamed(rules: Sequence[ProposedRule], templates: Sequence[Template]) -> list[tuple[str, ...]]:
    """Give the parts of templates after renames."""
    pairs = [(rule.item["rename"]["from"], rule.item["rename"]["to"]) for rule in rules]
    names = [_marked(template) for template in templates]
    _, found = _run(pairs, names)
    return [tuple(STAR if _is_mark(part) else part for part in name.split(".")) for name in found]


def _is_mark(part: str) -> bool:
    return part.isdecimal() and len(part) == len(str(_MARK)) and int(part) >= _MARK


_MARK = 7000


def _marked(template: Template) -> str:
    numbers = iter(range(_MARK, _MARK + len(template.parts)))
    return ".".join(str(next(numbers)) if part == "*" else part for part in template.parts)


def _example(change: Change, before: bool) -> str:
    return _marked(change.link.sources[0] if before else change.link.targets[0])


def _leads_elsewhere(change: Change, rules: Sequence[Rename]) -> bool:
    _, (found,) = _run(rules, [_example(change, True)])
    return found != _example(change, False)


def _without(change: Change, wrong: set[Rename]) -> Change:
    for rename in change.renames:
        if rename in wrong:
            change = change.widened(rename)
    return change


def _proposed(rules: Sequence[Rename], changes: Sequence[Change]) -> Iterable[ProposedRule]:
    """Give each rename with its links; a link is its narrowest rename's own, that which has the fewest."""
    users: dict[Rename, list[Change]] = defaultdict(list)
    for change in changes:
        for rename in change.renames:
            users[rename].append(change)
    for rename in rules:
        links = tuple(change.link for change in users[rename])
        own = (each.link for each in users[rename] if rename == min(each.renames, key=lambda one: len(users[one])))
        yield ProposedRule({"rename": {"from": rename[0], "to": rename[1]}}, links, tuple(own))
