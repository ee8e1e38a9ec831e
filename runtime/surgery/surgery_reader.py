"""The values of one operation of a surgery file; what is wrong becomes a problem, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from weightloom.engine.errors import UsageError
from weightloom.engine.surgery import Glob
from weightloom.engine.surgery.operation import Side
from weightloom.rules.nodes import List, Node, Scalar, show
from weightloom.rules.problems import Problems
from weightloom.rules.reading import choice, text

MAX_IDS = 1 << 20


@dataclass(frozen=True, slots=True)
class SurgeryReader:
    """Reads the values of one operation; what is wrong becomes a problem."""

    path: Path
    problems: Problems

    def glob(self, node: Node | None, what: str) -> Glob:
        """Read a pattern."""
        found = text(node, what, self.problems)
        if found is not None and node is not None:
            try:
                return Glob(found)
            except UsageError as error:
                self.problems.add(node.at, error.seen, expected=error.expected, field=what)
        return Glob("**")

    def number(
        self, node: Node | None, what: str, default: float, most: float = 3.4e38, least: float = -3.4e38
    ) -> float:
        """Read a number within bounds."""
        if node is None:
            return default
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self.problems.add(node.at, f"{what} is {show(node)}", expected="a number, like 0.5", field=what)
            return default
        if not least <= value <= most:
            self.problems.add(node.at, f"{what} is {value}", expected=f"{least:g} to {most:g}", field=what)
        return float(value)

    def source(self, node: Node | None, what: str) -> Path:
        """Read a path, relative to the file's own directory; it must be there."""
        found = text(node, what, self.problems)
        if not found or "\0" in found or node is None:
            if found is not None and node is not None:
                self.problems.add(node.at, f"{what} is {show(node)}", expected="a path", field=what)
            return self.path
        place = self.path.parent / found
        try:
            there = place.exists()
        except OSError:  # a name that is too long, a folder that may not be entered
            there = False
        if not there:
            self.problems.add(node.at, f"{what}: there is no {place}", expected="a checkpoint", field=what)
        return place

    def side(self, node: Node | None) -> Side:
        """Read whose names are meant."""
        found = choice(node, "side", self.problems, [side.value for side in Side])
        return Side.FILE if found == Side.FILE.value else Side.PARAMETER

    def ids(self, node: Node | None, what: str) -> tuple[int, ...]:
        """Read numbers from 0 on, each once."""
        items = node.items if isinstance(node, List) and len(node.items) <= MAX_IDS else ()
        found = [item.value for item in items if isinstance(item, Scalar) and type(item.value) is int]
        whole = len(found) == len(items) == len(set(found)) and min(found, default=-1) >= 0
        if node is not None and not whole:
            self.problems.add(node.at, f"{what} is {show(node)}", expected="numbers from 0 on, each once", field=what)
        return tuple(found) if whole and found else (0,)
