"""Picture: a plan as it is drawn, a value that a page can show without knowing anything of plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1

# First, last and step of numbers that follow each other.
Run = tuple[int, int, int]
# For each number in a template the numbers that stand there, every one with every other.
Box = tuple[tuple[Run, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Names of one template on one side: the text between their numbers, and which numbers.

    `steps` are the rules that act on them, by their place in the picture's `rules`. `dtype` and `shape` are None
    where nothing says them.
    """

    parts: tuple[str, ...]
    boxes: tuple[Box, ...]
    count: int
    dtype: str | None
    shape: tuple[int, ...] | None
    nbytes: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """What runs from rows on the left to rows on the right, by their places, in `groups` groups that are alike.

    One end may be empty: of what is dropped, missing or unexpected. `ops` are the ops in order, `note` says what the
    kind alone does not.
    """

    kind: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    groups: int
    ops: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule in words, what kind it is, where it is written, and why it is there."""

    kind: str
    text: str
    file: str | None = None
    line: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Findings of one kind: how many, in lines of text, and the threads that show them."""

    kind: str
    count: int
    lines: tuple[str, ...]
    threads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """How much there is on both sides; `peak` is what a load holds at most."""

    tensors: int
    tensor_bytes: int
    parameters: int
    parameter_bytes: int
    peak: int


@dataclass(frozen=True)
class Picture:
    """A plan as it is drawn: rows on both sides, threads between them, and what does not fit.

    `facts` are lines for the head, by label. `error` is why it would not load, with what was seen, expected and to do.
    """

    title: str
    facts: Mapping[str, str]
    loads: bool
    invertible: bool
    error: Mapping[str, str | None] | None
    totals: Totals
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    threads: tuple[Thread, ...]
    rules: tuple[RuleText, ...]
    problems: tuple[Problem, ...]
    hints: tuple[str, ...]

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON values."""
        return {"schema": SCHEMA, **asdict(self)}
