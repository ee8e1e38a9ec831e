"""What a save changed: names that fit now and did not, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine.planning.grouping import grouped_names
from weightloom.engine.planning.report import LoadReport

_FEW = 6
# For people, in the order in which they are shown: what each kind of misfit is called when it comes and when it goes.
_KINDS = {
    "unexpected": ("no longer mapped", "now mapped"),
    "missing": ("now missing", "no longer missing"),
    "mismatched": ("now mismatched", "now of the right shape"),
    "incomplete": ("now incomplete", "now complete"),
    "ambiguous": ("now ambiguous", "now certain"),
}


@dataclass(frozen=True)
class Differences:
    """The names of each kind of change, as `_KINDS` calls them; empty where a save changed nothing that matters."""

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def lines(self) -> Iterator[str]:
        """Give them as text, grouped by shape."""
        for title, names in self.names.items():
            yield f"  {title}: {len(names):,}"
            yield from (f"    {line}" for line in grouped_names(names, _FEW))

    def to_json(self) -> dict[str, Any]:
        """Give every name."""
        return {title: list(names) for title, names in self.names.items()}


def misfits(report: LoadReport) -> dict[str, frozenset[str]]:
    """Give the names of each kind of misfit."""
    return {
        "unexpected": frozenset(report.unexpected),
        "missing": frozenset(report.missing),
        "mismatched": frozenset(record.parameter for record in report.mismatched),
        "incomplete": frozenset(name for record in report.incomplete for name in record.parameters),
        "ambiguous": frozenset(record.name for record in report.ambiguous),
    }


def differences(before: LoadReport | None, after: LoadReport) -> Differences:
    """Compare two reports; of the first one there is, what does not fit counts as a change."""
    old, new = misfits(before or LoadReport()), misfits(after)
    found: dict[str, tuple[str, ...]] = {}
    for kind, (comes, goes) in _KINDS.items():
        found[goes] = tuple(sorted(old[kind] - new[kind]))
        found[comes] = tuple(sorted(new[kind] - old[kind]))
    return Differences({title: names for title, names in found.items() if names})


def counts(report: LoadReport) -> dict[str, int]:
    """Give how many names there are of each kind of misfit."""
    return {kind: len(names) for kind, names in misfits(report).items()}
