"""What a layout's readers want in config.json: fields in terms of the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.expressions import Expression
from weightloom.rules.nodes import Node, Scalar, Table, show
from weightloom.rules.problems import Problems
from weightloom.rules.reading import expression, fields, text


@dataclass(frozen=True, slots=True)
class Reworded:
    """A list with other words or numbers for some of its items: kinds of layers that a reader calls otherwise."""

    source: Expression
    words: tuple[tuple[str, str | int | bool], ...]

    def value(self, config: Mapping[str, Any]) -> Any:
        """Give it; what is no list is left as it is."""
        found, words = self.source.value(config), dict(self.words)
        return [words.get(str(item), item) for item in found] if isinstance(found, list) else found


@dataclass(frozen=True, slots=True)
class Period:
    """After how many items of a list one of a kind comes, where it comes after as many each time and never else."""

    source: Expression
    kind: str

    def value(self, config: Mapping[str, Any]) -> Any:
        """Give it; None for what is no list, has none of the kind, or has it at other distances too."""
        found = self.source.value(config)
        if not isinstance(found, list) or self.kind not in found:
            return None
        count = found.index(self.kind) + 1
        even = all((item == self.kind) == (place % count == 0) for place, item in enumerate(found, 1))
        return count if even else None


Wanted = Expression | Reworded | Period


def read_config(node: Node | None, problems: Problems) -> tuple[tuple[str, Wanted], ...]:
    """Read the `config` of a layout."""
    if node is None:
        return ()
    if not isinstance(node, Table):
        problems.add(node.at, f"config is {show(node)}", expected="a mapping from a field to an expression")
        return ()
    read = ((entry.key, _wanted(entry.value, entry.key, problems)) for entry in node.entries)
    return tuple((key, value) for key, value in read if value is not None)


def _wanted(node: Node, key: str, problems: Problems) -> Wanted | None:
    if isinstance(node, Table) and any(entry.key == "period" for entry in node.entries):
        found = fields(node, key, problems, required=("period", "of"))
        source, kind = _expression(found.get("period"), "period", problems), text(found.get("of"), "of", problems)
        return None if source is None or kind is None else Period(source, kind)
    if isinstance(node, Table):
        found = fields(node, key, problems, required=("each", "as"))
        source = _expression(found.get("each"), "each", problems)
        words = tuple(_words(found.get("as"), problems))
        return None if source is None else Reworded(source, words)
    return _expression(node, key, problems)


def _expression(node: Node | None, key: str, problems: Problems) -> Expression | None:
    found = text(node, key, problems)
    return None if found is None or node is None else expression(found, node.at, problems)


def _words(node: Node | None, problems: Problems) -> Iterator[tuple[str, str | int | bool]]:
    if node is not None and not isinstance(node, Table):
        problems.add(node.at, f"as is {show(node)}", expected="a mapping from a word to another, or to a number")
    for entry in node.entries if isinstance(node, Table) else ():
        if isinstance(entry.value, Scalar) and isinstance(entry.value.value, str | int | bool):
            yield entry.key, entry.value.value
        else:
            problems.add(entry.at, f"{entry.key} is {show(entry.value)}", expected="a word, a number, true or false")
