"""Which parameters a prompt of text alone never uses."""

from __future__ import annotations

from collections.abc import Iterable

from weightloom.engine.plan import Plan


def unused_by_text(plan: Plan, towers: Iterable[str]) -> set[str]:
    """Give the parameters below towers; not those that are made, or shared, with one that is below none."""
    prefixes = tuple(f"{tower}." for tower in towers)
    found = {name for name in plan.params if name.startswith(prefixes)} if prefixes else set()
    for group in (*plan.groups, *plan.copies) if found else ():
        if not found.issuperset(group.targets):
            found.difference_update(group.targets)
    for names in plan.report.tied_names:
        if not found.issuperset(names):
            found.difference_update(names)
    return found
