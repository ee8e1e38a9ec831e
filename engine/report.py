"""LoadReport: what fits, what does not, and the rule that decided; names as the checkpoint spells them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from weightloom.engine.shapes import shape_text

_EXAMPLES = 10


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
    """Everything a plan found. `unexpected` has checkpoint names, `missing` has parameter names."""

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    mismatched: tuple[Mismatch, ...] = ()
    incomplete: tuple[Incomplete, ...] = ()
    ambiguous: tuple[Ambiguous, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    tied: tuple[Tied, ...] = ()
    lossy: tuple[Lossy, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """Say whether something does not fit that no leniency covers."""
        return bool(self.mismatched or self.incomplete or self.ambiguous)

    def to_json(self) -> dict[str, Any]:
        """Give every name of every kind."""
        return {f.name: [_plain(item) for item in getattr(self, f.name)] for f in fields(self)}

    def lines(self) -> Iterator[str]:
        """Give the report as text, names grouped by shape, at most ten lines a kind."""
        for field in fields(self):
            items = getattr(self, field.name)
            if items:
                yield f"{field.name.replace('_', ' ')}: {len(items)}"
                yield from (f"  {line}" for line in grouped(str(item) for item in items))

    def __str__(self) -> str:
        return "\n".join(self.lines())


def grouped(lines: Iterable[str]) -> Iterator[str]:
    """Join lines that differ in numbers alone, most frequent first, and cut the list at ten."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[shape_text(line)].append(line)
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    for text, members in ranked[:_EXAMPLES]:
        yield members[0] if len(members) == 1 else f"{text} x{len(members)}"
    if len(ranked) > _EXAMPLES:
        rest = sum(len(members) for _, members in ranked[_EXAMPLES:])
        yield f"... and {rest} more of {len(ranked) - _EXAMPLES} other shapes of name (--json lists all)"


def _plain(item: Any) -> Any:
    return item if isinstance(item, str) else asdict(item)


def _few(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:_EXAMPLES]))
    return shown if len(numbers) <= _EXAMPLES else f"{shown}, ... ({len(numbers)} in all)"
