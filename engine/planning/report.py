"""LoadReport: what fits, what does not, and the rule that decided; names as the checkpoint spells them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from weightloom.engine.mapping.shapes import shape_text

_EXAMPLES = 10
_FEW = 2
_LAYER = re.compile(r"(.*?\.\d+)\.")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A parameter whose tensor has another shape or class of dtype, or whose ops do not fit the tensors."""

    parameter: str
    sources: tuple[str, ...]
    seen: str
    expected: str
    rule: str | None = None

    def __str__(self) -> str:
        rule = f" [{self.rule}]" if self.rule else ""
        return f"{self.parameter}: {self.seen}; expected {self.expected}{rule}"


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A converter's group that lacks sources: `pattern` lacks `numbers` (all of it when there are none)."""

    group: str
    pattern: str
    numbers: tuple[int, ...]
    parameters: tuple[str, ...]
    rule: str

    def __str__(self) -> str:
        what = "no tensor" if not self.numbers else f"no index {_few(self.numbers)}"
        return f"group {self.group}: pattern {self.pattern} has {what} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """One name claimed by two rules, or one parameter reached by two names."""

    name: str
    claimants: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}: {', '.join(self.claimants)}"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A tensor that a rule leaves out of the parameters; it is saved back."""

    name: str
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} [{self.rule}]{': ' + self.why if self.why else ''}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A parameter that a layout has no room for, so that it is not written in it."""

    parameter: str
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.parameter} [{self.rule}]{': ' + self.why if self.why else ''}"


@dataclass(frozen=True, slots=True)
class Tied:
    """A parameter that shares the tensor of another; `copy`: the checkpoint has both, and they must be equal."""

    parameter: str
    other: str
    copy: bool
    rule: str

    def __str__(self) -> str:
        return f"{self.parameter} {'is a second copy of' if self.copy else 'shares'} {self.other} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Lossy:
    """Parameters from which the checkpoint cannot be written back exactly, and why."""

    rule: str
    why: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {self.why} ({len(self.parameters)} parameters)"


@dataclass(frozen=True, slots=True)
class SetAside:
    """A name that is a parameter as it stands, so that the rule which would have changed it was not applied."""

    name: str
    rule: str

    def __str__(self) -> str:
        return f"{self.name} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Everything a plan found. `unexpected` has checkpoint names, `missing` has parameter names.

    `repaired` are the places of the config that were read otherwise than they are written.
    """

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    mismatched: tuple[Mismatch, ...] = ()
    incomplete: tuple[Incomplete, ...] = ()
    ambiguous: tuple[Ambiguous, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    absent: tuple[LeftOut, ...] = ()
    tied: tuple[Tied, ...] = ()
    lossy: tuple[Lossy, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    repaired: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """Say whether something does not fit that no leniency covers."""
        return bool(self.mismatched or self.incomplete or self.ambiguous)

    @property
    def tied_names(self) -> tuple[tuple[str, ...], ...]:
        """The parameters that share one tensor, each set of them sorted."""
        sets: dict[str, frozenset[str]] = {}
        for record in self.tied:
            ends = (record.parameter, record.other)
            joined = frozenset(ends).union(*(sets.get(end, ()) for end in ends))
            sets |= dict.fromkeys(joined, joined)
        return tuple(sorted({tuple(sorted(names)) for names in sets.values()}))

    @property
    def kinds(self) -> int:
        """How many kinds of finding there are."""
        return sum(bool(getattr(self, field.name)) for field in fields(self))

    def to_json(self) -> dict[str, Any]:
        """Give every name of every kind."""
        return {f.name: [_plain(item) for item in getattr(self, f.name)] for f in fields(self)}

    def lines(self, examples: int = _EXAMPLES) -> Iterator[str]:
        """Give the report as text, names grouped by shape, at most `examples` lines a kind."""
        for field in fields(self):
            items = getattr(self, field.name)
            if items:
                yield f"{field.name.replace('_', ' ')}: {len(items)}"
                group = _GROUPING.get(field.name, grouped)
                yield from (f"  {line}" for line in group([str(item) for item in items], examples))

    def __str__(self) -> str:
        return "\n".join(self.lines())


def grouped(lines: Iterable[str], most: int = _EXAMPLES) -> Iterator[str]:
    """Join lines that differ in numbers alone, most frequent first, and cut the list at `most`."""
    return _first(_by_shape(lines), most)


def grouped_names(names: Iterable[str], most: int = _EXAMPLES) -> Iterator[str]:
    """Do the same for names, and join those of one layer whose shapes of name no other has."""
    return _first(_by_layer(_by_shape(names)), most)


def grouped_by_first(lines: Iterable[str], most: int = _EXAMPLES) -> Iterator[str]:
    """Join lines that differ in numbers alone, as the first of them: for lines that are about those numbers."""
    groups = {
        members[0] if len(members) == 1 else f"{members[0]} and others alike, in all": members
        for members in _by_shape(lines).values()
    }
    return _first(groups, most)


def grouped_mismatches(lines: Iterable[str], most: int = _EXAMPLES) -> Iterator[str]:
    """Join lines that differ in the numbers of their name alone: the shapes that follow are what matters."""
    groups: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        name, colon, rest = line.partition(": ")
        groups[f"{shape_text(name)}{colon}{rest}"].append(line)
    shown = {members[0] if len(members) == 1 else text: members for text, members in groups.items()}
    return _first(shown, most)


_GROUPING = {
    "missing": grouped_names,
    "unexpected": grouped_names,
    "incomplete": grouped_by_first,
    "mismatched": grouped_mismatches,
}


def by_layer(names: Iterable[str]) -> dict[str, list[str]]:
    """Put names together by their part up to the first number: `model.layers.1` (all of a name without one)."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        start = _LAYER.match(name)
        found[start[1] if start else name].append(name)
    return found


def _by_shape(lines: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[shape_text(line)].append(line)
    return found


def _by_layer(groups: Mapping[str, list[str]]) -> dict[str, list[str]]:
    found = {shape: names for shape, names in groups.items() if len(names) > 1}
    for layer, names in by_layer(names[0] for names in groups.values() if len(names) == 1).items():
        found |= {f"{layer}.*": names} if len(names) > _FEW else {name: [name] for name in names}
    return found


def _first(groups: Mapping[str, list[str]], most: int) -> Iterator[str]:
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    for text, members in ranked[:most]:
        yield members[0] if len(members) == 1 else f"{text} x{len(members)}"
    if len(ranked) > most:
        rest = sum(len(members) for _, members in ranked[most:])
        yield f"... and {rest} more of {len(ranked) - most} other shapes of name (--json lists all)"


def _plain(item: Any) -> Any:
    return item if isinstance(item, str) else asdict(item)


def _few(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:_EXAMPLES]))
    return shown if len(numbers) <= _EXAMPLES else f"{shown}, ... ({len(numbers)} in all)"
