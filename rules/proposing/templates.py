"""Templates: names whose numbers are indices, with the shape at each index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from weightloom.engine.spec import TensorSpec

Index = tuple[int, ...]
Shape = tuple[int, ...]
STAR = "*"
ENDS = ("weight", "bias")


@dataclass(frozen=True)
class Template:
    """One shape of name: its parts, `*` for a number, and the shape of the tensor at each index."""

    parts: tuple[str, ...]
    shapes: Mapping[Index, Shape] = field(compare=False, repr=False)

    @cached_property
    def text(self) -> str:
        """The name with `*` for each number."""
        return ".".join(self.parts)

    @cached_property
    def indices(self) -> frozenset[Index]:
        """The indices at which there is a tensor."""
        return frozenset(self.shapes)

    @property
    def stars(self) -> int:
        """How many numbers a name has."""
        return len(next(iter(self.shapes)))

    @property
    def end(self) -> str:
        """`weight` or `bias`, or "" where the last part is the parameter's own name."""
        return self.parts[-1] if self.parts[-1] in ENDS and len(self.parts) > 1 else ""

    @property
    def module(self) -> tuple[str, ...]:
        """The parts without `weight` or `bias`."""
        return self.parts[:-1] if self.end else self.parts

    @property
    def family(self) -> tuple[tuple[str, ...], str]:
        """What a template and those beside it in one module share: the module above, and the end."""
        return self.module[:-1], self.end

    @property
    def example(self) -> Shape:
        """The shape at the first index."""
        return self.shapes[min(self.shapes)]

    @property
    def shown(self) -> str:
        """The names as people are told of them: by their template, or the only one."""
        return self.name(next(iter(self.shapes))) if len(self.shapes) == 1 else f"{self.text} x{len(self.shapes)}"

    def name(self, index: Index) -> str:
        """Give the name at an index."""
        numbers = iter(index)
        return ".".join(str(next(numbers, part)) if part == STAR else part for part in self.parts)

    @property
    def names(self) -> Iterable[str]:
        """All names."""
        return map(self.name, self.shapes)


def templates_of(specs: Mapping[str, TensorSpec]) -> list[Template]:
    """Group names by template. A part that is a number is an index where its numbers run from 0 without a gap."""
    lists = _lists(specs)
    found: dict[tuple[str, ...], dict[Index, Shape]] = defaultdict(dict)
    for name, spec in specs.items():
        parts, index = _split(name.split("."), lists)
        found[parts][index] = spec.shape
    return [Template(parts, shapes) for parts, shapes in found.items()]


def _lists(names: Iterable[str]) -> set[tuple[str, ...]]:
    """Give the paths, numbers above them as `*`, below which numbers count a list."""
    below: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for name in names:
        path: tuple[str, ...] = ()
        for part in name.split("."):
            if _is_number(part):
                below[path].add(int(part))
                path = (*path, STAR)
            else:
                path = (*path, part)
    return {path for path, numbers in below.items() if max(numbers) < len(numbers) or len(numbers) > _FEW}


# More numbers than this are a list even with gaps: layers of one kind among others.
_FEW = 4


def _is_number(part: str) -> bool:
    """Say whether a part is what a number is written as: `07` is a name, for 7 does not lead back to it."""
    return part.isdecimal() and part.isascii() and (part == "0" or part[0] != "0") and len(part) <= _DIGITS


# What has more is a name: no list is that long.
_DIGITS = 9


def _split(parts: list[str], lists: set[tuple[str, ...]]) -> tuple[tuple[str, ...], Index]:
    if STAR in parts:
        return (".".join(parts),), ()  # a star that is a name's own stands for no number
    path: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    index: list[int] = []
    for part in parts:
        number = _is_number(part)
        if number and seen in lists:
            index.append(int(part))
            path = (*path, STAR)
        else:
            path = (*path, part)
        seen = (*seen, STAR) if number else (*seen, part)
    return path, tuple(index)
