"""What a layout builds on: `extends` puts the rules of another layout first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weightloom.engine.errors import RuleError, UsageError
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.rules.config_fields import Wanted
from weightloom.rules.document import Layout, Reference, RuleFile
from weightloom.rules.problems import did_you_mean

Find = Callable[[str], RuleFile]
_Trail = tuple[tuple[str, str], ...]


def layout_rules(file: RuleFile, layout: str, find: Find) -> RuleSet:
    """Give a layout's rules with those that it extends; `find` gives the file of a family.

    Raises UsageError for a layout that is not there, RuleError where `extends` goes round or leads nowhere.
    """
    if layout not in layout_names(file, find):
        raise no_such_layout(file.head.family, layout, layout_names(file, find))
    return RuleSet(_rules(file, layout, find, ()), base_model_prefix(file, find))


def layout_config(file: RuleFile, layout: str, find: Find) -> dict[str, Wanted]:
    """Give the config fields that a layout's readers want, its own before those that it takes over.

    Raises as `layout_rules` does.
    """
    found: dict[str, Wanted] = {}
    for each in _layouts(file, layout, find, ()):
        found |= dict(each.config)
    return found


def layout_parts(file: RuleFile, layout: str, find: Find) -> tuple[Layout, ...]:
    """Give the layouts that make up one, itself last where the file has it; raises as `layout_rules` does."""
    return tuple(_layouts(file, layout, find, ()))


def layout_names(file: RuleFile, find: Find) -> tuple[str, ...]:
    """Give the layouts of a file, those that it takes over included, in the order written."""
    names = [layout.name for above in ancestors(file, find) for layout in above.layouts]
    return tuple(dict.fromkeys(names))


def base_model_prefix(file: RuleFile, find: Find) -> str:
    """Give the prefix that the file, or the nearest one that it extends, names."""
    own = (above.head.base_model_prefix for above in ancestors(file, find))
    return next((prefix for prefix in own if prefix is not None), "")


def ancestors(file: RuleFile, find: Find) -> Iterator[RuleFile]:
    """Yield a file and those that it extends as a whole, nearest first; raises RuleError where they go round."""
    seen: list[str] = []
    current = file
    while True:
        seen.append(current.head.family)
        yield current
        reference = current.head.extends
        if reference is None:
            return
        if reference.family in seen:
            raise _goes_round(current, reference, [*seen, reference.family])
        current = _found(current, reference, find)


def no_such_layout(family: str, layout: str, known: tuple[str, ...]) -> UsageError:
    """Give the error for a layout that a family does not have."""
    return UsageError(
        f"{family} has no layout {layout!r}",
        expected=f"one of {', '.join(known)}" if known else "a family with layouts",
        hint=did_you_mean(layout, known),
        field="layout",
    )


def _rules(file: RuleFile, layout: str, find: Find, trail: _Trail) -> Iterator[Rule]:
    for each in _layouts(file, layout, find, trail):
        yield from each.rules


def _layouts(file: RuleFile, layout: str, find: Find, trail: _Trail) -> Iterator[Layout]:
    """Yield the layouts that make up one, in the order in which their rules act."""
    here = (file.head.family, layout)
    own = file.layout(layout)
    for reference in (file.head.extends, own.extends if own else None):
        if reference is not None:
            yield from _extended(file, layout, reference, find, (*trail, here))
    if own is not None:
        yield own


def _extended(file: RuleFile, layout: str, reference: Reference, find: Find, trail: _Trail) -> Iterator[Layout]:
    wanted = reference.layout or layout
    if (reference.family, wanted) in trail:
        steps = [f"{family}/{name}" for family, name in (*trail, (reference.family, wanted))]
        raise _goes_round(file, reference, steps)
    other = file if reference.family == file.head.family else _found(file, reference, find)
    known = layout_names(other, find)
    if wanted in known:
        yield from _layouts(other, wanted, find, trail)
    elif reference.layout is not None or reference is not file.head.extends:
        raise RuleError(
            f"extends {str(reference)!r}, but {reference.family} has no layout {wanted!r}",
            expected=f"one of {', '.join(known)}",
            file=_place(file, reference),
            field="extends",
        )


def _found(file: RuleFile, reference: Reference, find: Find) -> RuleFile:
    try:
        return find(reference.family)
    except UsageError as error:
        raise RuleError(
            f"extends {str(reference)!r}: {error.seen}",
            expected=error.expected,
            hint=error.hint,
            file=_place(file, reference),
            field="extends",
        ) from error


def _goes_round(file: RuleFile, reference: Reference, steps: list[str]) -> RuleError:
    return RuleError(
        f"extends goes round: {' -> '.join(steps)}",
        expected="families that build on each other one way",
        file=_place(file, reference),
        field="extends",
    )


def _place(file: RuleFile, reference: Reference) -> str:
    return f"{file.file}:{reference.at.line}:{reference.at.column}"
