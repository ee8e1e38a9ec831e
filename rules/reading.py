"""Typed access to nodes: what is not of the wanted form becomes a problem, and reading goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weightloom.engine.errors import RuleError
from weightloom.engine.expressions import Expression
from weightloom.rules.nodes import Entry, List, Node, Scalar, Table, show
from weightloom.rules.problems import Mark, Problems, did_you_mean

MAX_TEXT = 500
MAX_NESTED = 20


def fields(
    node: Node, what: str, problems: Problems, *, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> Mapping[str, Node]:
    """Give a mapping's values by key; unknown and absent keys, and what is no mapping, are problems."""
    return {key: entry.value for key, entry in entries(node, what, problems, required, optional).items()}


def entries(
    node: Node, what: str, problems: Problems, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> Mapping[str, Entry]:
    """Give a mapping's entries by key, as `fields` does."""
    if not isinstance(node, Table):
        wanted = ", ".join((*required, *optional))
        problems.add(node.at, f"{what} is {show(node)}", expected=f"a mapping with {wanted}")
        return {}
    known = (*required, *optional)
    found: dict[str, Entry] = {}
    for entry in node.entries:
        if entry.key in known:
            found[entry.key] = entry
        else:
            problems.add(
                entry.at,
                f"{what} has an unknown key {entry.key!r}",
                expected=f"one of {', '.join(known)}",
                hint=did_you_mean(entry.key, known),
                field=entry.key,
            )
    for key in required:
        if key not in found:
            problems.add(node.at, f"{what} lacks {key!r}", expected=f"{key!r} in {what}", field=key)
    return found


def text(node: Node | None, what: str, problems: Problems) -> str | None:
    """Give a text, or None with a problem."""
    if node is None:
        return None
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        problems.add(node.at, f"{what} is {show(node)}", expected="text", hint="put it in single quotes")
        return None
    return node.value


def expression(value: str, at: Mark, problems: Problems) -> Expression | None:
    """Read an expression over the config, or None with a problem."""
    try:
        return Expression(value)
    except RuleError as error:
        problems.add(at, error.seen, expected=error.expected, hint=error.hint, field="config")
        return None


def name(node: Node | None, what: str, problems: Problems) -> str | None:
    """Give a text that is a name: not empty, no spaces, not too long."""
    found = text(node, what, problems)
    if found is None or node is None:
        return None
    if not found or len(found) > MAX_TEXT or any(c.isspace() or not c.isprintable() for c in found):
        problems.add(node.at, f"{what} is {found[:80]!r}", expected="a name without spaces")
        return None
    return found


def names(node: Node | None, what: str, problems: Problems) -> tuple[str, ...]:
    """Give a list of names."""
    if node is None:
        return ()
    if not isinstance(node, List):
        problems.add(node.at, f"{what} is {show(node)}", expected="a list of names")
        return ()
    found = (name(item, f"an entry of {what}", problems) for item in node.items)
    return tuple(each for each in found if each is not None)


def pattern(node: Node | None, what: str, problems: Problems) -> str | None:
    """Give a pattern; one that is too long or nested too deep is a problem."""
    found = text(node, what, problems)
    if found is None or node is None:
        return None
    if len(found) > MAX_TEXT or found.count("(") > MAX_NESTED:
        problems.add(
            node.at,
            f"{what} has {len(found)} characters and {found.count('(')} parentheses",
            expected=f"at most {MAX_TEXT} characters and {MAX_NESTED} parentheses",
        )
        return None
    return found


def patterns(node: Node | None, what: str, problems: Problems) -> tuple[str, ...]:
    """Give one pattern or a list of them; none at all is a problem."""
    if node is None:
        return ()
    if isinstance(node, List):
        if not node.items:
            problems.add(node.at, f"{what} is an empty list", expected="a pattern, or a list of them")
        found = [pattern(item, what, problems) for item in node.items]
    else:
        found = [pattern(node, what, problems)]
    return tuple(each for each in found if each is not None)


def truth(node: Node | None, what: str, problems: Problems) -> bool | None:
    """Give true or false, or None with a problem."""
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    problems.add(node.at, f"{what} is {show(node)}", expected="true or false")
    return None


def choice(node: Node | None, what: str, problems: Problems, known: Sequence[str]) -> str | None:
    """Give one of some words, or None with a problem."""
    found = text(node, what, problems)
    if found is None or node is None or found in known:
        return found
    problems.add(
        node.at, f"{what} is {found!r}", expected=f"one of {', '.join(known)}", hint=did_you_mean(found, known)
    )
    return None
