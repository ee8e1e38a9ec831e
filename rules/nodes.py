"""A YAML text as values, each with its place: scalars, lists and mappings with text keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weightloom.rules.problems import Mark

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value."""

    at: Mark
    value: Value

    kind = "a value"


@dataclass(frozen=True, slots=True)
class List:
    """Values in order."""

    at: Mark
    items: tuple[Node, ...]

    kind = "a list"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping with its value; `at` is the key's place."""

    at: Mark
    key: str
    value: Node


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping; no key twice."""

    at: Mark
    entries: tuple[Entry, ...]

    kind = "a mapping"


Node = Scalar | List | Table


def show(node: Node) -> str:
    """Say in a word or two what a node is."""
    return repr(node.value) if isinstance(node, Scalar) else node.kind


def plain(node: Node) -> object:
    """Give a node as Python's own values: lists become tuples, mappings dicts."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, List):
        return tuple(plain(item) for item in node.items)
    return {entry.key: plain(entry.value) for entry in node.entries}


def texts(node: Node) -> Iterator[tuple[str, Mark]]:
    """Yield every text in a node with its place, in order."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            yield node.value, node.at
    elif isinstance(node, List):
        for item in node.items:
            yield from texts(item)
    else:
        for entry in node.entries:
            yield from texts(entry.value)
