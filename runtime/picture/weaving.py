"""Strands that are alike as one thread, and the names at its ends as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from weightloom.engine.spec import TensorSpec
from weightloom.runtime.picture.boxes import boxes
from weightloom.runtime.picture.kinds import PROBLEMS
from weightloom.runtime.picture.picture import Row, Thread
from weightloom.runtime.picture.spelling import Spelling
from weightloom.runtime.picture.strands import Strand

# A template, with what its names have alike.
_Alike = tuple[tuple[str, ...], str | None, tuple[int, ...] | None]


@dataclass(frozen=True)
class Side:
    """The names of one side: how each is spelt, what it is, and where it comes in the order of the whole."""

    spellings: Mapping[str, Spelling]
    specs: Mapping[str, TensorSpec]
    order: Mapping[str, int]

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def alike(self, name: str) -> _Alike:
        """Give what a name has alike with the others of its row."""
        spec = self.specs.get(name)
        parts = self.spellings[name].parts
        return (parts, None, None) if spec is None else (parts, spec.dtype, spec.shape)

    def rows(self, names: Iterable[str]) -> dict[_Alike, list[str]]:
        """Put names together that are one row, in the order in which they come."""
        found: dict[_Alike, list[str]] = defaultdict(list)
        for name in names:
            found[self.alike(name)].append(name)
        return found

    def row(self, names: Sequence[str]) -> Row:
        """Draw names that are one row."""
        parts, dtype, shape = self.alike(names[0])
        found = boxes(self.spellings[name].numbers for name in names)
        spec = self.specs.get(names[0])
        nbytes = 0 if spec is None else spec.nbytes * len(names)
        return Row(parts, found, len(names), dtype, shape, nbytes)


@dataclass
class _Alikes:
    """Strands that will be one thread, while they are collected."""

    first: Strand
    left: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, strand: Strand) -> None:
        self.left += strand.sources
        self.right += strand.targets
        self.count += 1


@dataclass(frozen=True)
class Woven:
    """Threads and rows, for each thread a strand of it, and for each row one of its names."""

    threads: tuple[Thread, ...]
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    strands: tuple[Strand, ...]
    left_names: tuple[str, ...]


def weave(strands: Iterable[Strand], left: Side, right: Side) -> Woven:
    """Draw strands together: what does not fit first, what is dropped last, all else in the order of the parameters."""
    bundles: dict[object, _Alikes] = {}
    for strand in strands:
        bundles.setdefault(_key(strand, left, right), _Alikes(strand)).add(strand)
    ordered = sorted(bundles.values(), key=lambda found: _rank(found.first, left, right))
    loom = _Loom(left, right)
    # What shares another's tensors starts where those are drawn.
    for found in sorted(ordered, key=lambda found: found.first.kind == "tied"):
        loom.add(found)
    threads = [loom.threads[id(found)] for found in ordered]
    return Woven(
        tuple(threads),
        tuple(loom.left_rows),
        tuple(loom.right_rows),
        tuple(found.first for found in ordered),
        tuple(loom.left_names),
    )


def _key(strand: Strand, left: Side, right: Side) -> object:
    """Give what strands of one thread have alike; without a second end there is nothing that templates tell apart."""
    group = strand.group
    if not (strand.sources and strand.targets):
        return (strand.kind, strand.rule, strand.note)
    how = (None, None) if group is None else (group.rule, group.program)
    return (
        strand.kind,
        strand.rule,
        strand.note,
        how,
        tuple(left.rows(strand.sources)),
        tuple(right.rows(strand.targets)),
    )


def _rank(strand: Strand, left: Side, right: Side) -> tuple[int, int]:
    kind = strand.kind
    group = PROBLEMS.index(kind) if kind in PROBLEMS else len(PROBLEMS) + (not strand.targets)
    places = [right.order.get(name) for name in strand.targets] or [left.order.get(name) for name in strand.sources]
    return group, min((place for place in places if place is not None), default=len(right.order))


class _Loom:
    """Draws threads one after the other; a name that is in a row already is not drawn again."""

    def __init__(self, left: Side, right: Side) -> None:
        self.sides = (left, right)
        self.left_rows: list[Row] = []
        self.right_rows: list[Row] = []
        self.left_names: list[str] = []
        self.threads: dict[int, Thread] = {}
        self._drawn: dict[str, int] = {}

    def add(self, found: _Alikes) -> None:
        """Draw a thread and the rows at its ends."""
        left = dict.fromkeys(self._drawn[name] for name in found.left if name in self._drawn)
        for names in self.sides[0].rows(name for name in found.left if name not in self._drawn).values():
            place = len(self.left_rows)
            left[place] = None
            self._drawn |= dict.fromkeys(names, place)
            self.left_rows.append(self.sides[0].row(names))
            self.left_names.append(names[0])
        right = []
        for names in self.sides[1].rows(found.right).values():
            right.append(len(self.right_rows))
            self.right_rows.append(self.sides[1].row(names))
        strand = found.first
        thread = Thread(strand.kind, tuple(left), tuple(right), found.count, note=strand.note)
        self.threads[id(found)] = _with_ops(thread, strand)


def _with_ops(thread: Thread, strand: Strand) -> Thread:
    rule = strand.group.rule if strand.group else None
    return replace(thread, ops=tuple(map(_op_text, getattr(rule, "operations", ()))))


def _op_text(op: Any) -> str:
    """Show an op with what it says beyond the usual."""
    said = [(each.name, getattr(op, each.name), each.default) for each in fields(op) if each.repr]
    inside = ", ".join(f"{name}={value!r}" for name, value, usual in said if value != usual)
    return f"{type(op).__name__}({inside})" if inside else type(op).__name__
