"""LoadReport: what fits, what does not, and the rule that decided; names as the checkpoint spells them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from weightloom.engine.planning.grouping import (
    EXAMPLES,
    as_they_are,
    grouped,
    grouped_by_first,
    grouped_mismatches,
    grouped_names,
)

_GROUPING = {
    "missing": grouped_names,
    "unexpected": grouped_names,
    "incomplete": grouped_by_first,
    "mismatched": grouped_mismatches,
    "repaired": as_they_are,
    "hints": as_they_are,
}
Difference = Literal["shape", "transposed", "dtype class", "ops"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A parameter whose tensor has another shape or class of dtype, or whose ops do not fit: `differs` says which."""

    parameter: str
    sources: tuple[str, ...]
    seen: str
    expected: str
    rule: str | None = None
    differs: tuple[Difference, ...] = ("ops",)

    def __str__(self) -> str:
        rule = f" [{self.rule}]" if self.rule else ""
        why = " (another class of dtype)" if "dtype class" in self.differs else ""
        return f"{self.parameter}: {self.seen}; expected {self.expected}{why}{rule}"


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
        if self.copy:
            what = f"is a second copy of {self.other}: compared before any is bound, both written back as found"
        else:
            what = f"shares {self.other}, the one that is in the file"
        return f"{self.parameter} {what} [{self.rule}]"


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

    `repaired` are the places of the config that were read otherwise than they are written; `hints` say what probably
    went wrong.
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
    hints: tuple[str, ...] = ()

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

    def to_json(self) -> dict[str, Any]:
        """Give every name of every kind."""
        return {f.name: [_plain(item) for item in getattr(self, f.name)] for f in fields(self)}

    def lines(self, examples: int | None = EXAMPLES) -> Iterator[str]:
        """Give the report as text, names grouped by shape, at most `examples` lines a kind (None: all names)."""
        for field in fields(self):
            yield from self.lines_of(field.name, examples)

    def lines_of(self, kind: str, examples: int | None = EXAMPLES) -> Iterator[str]:
        """Give what was found of one kind, such as `missing`, in the same way; nothing where there is nothing."""
        items = getattr(self, kind)
        if items:
            yield f"{kind.replace('_', ' ')}: {len(items)}"
            group = _GROUPING.get(kind, grouped)
            yield from (f"  {line}" for line in group([str(item) for item in items], examples))

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _plain(item: Any) -> Any:
    return item if isinstance(item, str) else asdict(item)


def _few(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:EXAMPLES]))
    return shown if len(numbers) <= EXAMPLES else f"{shown}, ... ({len(numbers)} in all)"
