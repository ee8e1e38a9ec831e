"""What a plan's report says, in the order in which a reader wants it: what stops a load, what is lost, what else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weightloom.engine.planning.report import LoadReport
from weightloom.runtime.picture.picture import Problem, Thread

_KINDS = (
    "missing",
    "unexpected",
    "mismatched",
    "incomplete",
    "ambiguous",
    "lossy",
    "absent",
    "set_aside",
    "repaired",
    "notes",
)
# Threads show these: lines would say the same once more.
_SHOWN = ("missing", "unexpected")
_LINES = 100


def findings(report: LoadReport, threads: Sequence[Thread]) -> Iterator[Problem]:
    """Give what was found, a kind at a time, without what was not."""
    for kind in _KINDS:
        count = len(getattr(report, kind))
        if count:
            shown = tuple(place for place, thread in enumerate(threads) if thread.kind == kind)
            lines = () if kind in _SHOWN else tuple(_lines(report, kind))
            yield Problem(kind.replace("_", " "), count, lines, shown)


def _lines(report: LoadReport, kind: str) -> Iterator[str]:
    lines = report.lines_of(kind, _LINES)
    next(lines)
    yield from (line.strip() for line in lines)
