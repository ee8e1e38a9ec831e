"""The prefix rule that is likely missing: found by the names, and held against what a plan with it would match."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine.mapping.shapes import shape_text
from weightloom.engine.planning.report import LoadReport

# Each is planned anew, and a checkpoint may have 100,000 names.
_TRIALS = 3


@dataclass(frozen=True, slots=True)
class Matched:
    """How many of a checkpoint's tensors lead to a parameter, of those that no rule drops."""

    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What is matched as it is, and what would be with a first part of all names exchanged (None: names clash)."""

    now: Matched
    under: Callable[[str, str], Matched | None]


def prefix_hint(report: LoadReport, trial: Trial) -> str | None:
    """Say which first part has to be put on, taken off or exchanged; None where that does not match half as many."""
    best, change = trial.now, None
    for old, new in _candidates(report):
        found = trial.under(old, new)
        if found is not None and found.count > best.count:
            best, change = found, (old, new)
        if best.count == best.of:
            break
    if change is None or 2 * (best.count - trial.now.count) < len(report.unexpected):
        return None
    old, new = change
    rule = f"rename: {{from: '^{re.escape(old)}', to: '{new}'}}"
    return (
        f"prefix {old or '(none)'} -> {new or '(none)'} would match {best.count} of {best.of} names "
        f"(in a rule file: {rule})"
    )


def _candidates(report: LoadReport) -> Iterator[tuple[str, str]]:
    """Give first parts of unexpected names, and what missing ones begin with, the likeliest first."""
    unexpected, missing = Counter(map(shape_text, report.unexpected)), Counter(map(shape_text, report.missing))
    olds, news = ["", *_starts(unexpected)], ["", *_starts(missing)]
    counts = {
        (old, new): sum(
            count
            for name, count in unexpected.items()
            if name.startswith(old) and new + name.removeprefix(old) in missing
        )
        for old in olds
        for new in news
        if old != new
    }
    ranked = sorted((pair for pair, count in counts.items() if count), key=lambda pair: _rank(counts[pair], pair))
    yield from ranked[:_TRIALS]
    whole = _common_start(report.unexpected)
    if not ranked and whole and missing:
        yield whole, ""


def _rank(count: int, pair: tuple[str, str]) -> tuple[int, int, tuple[str, str]]:
    return -count, len(pair[0]) + len(pair[1]), pair


def _starts(names: Mapping[str, int]) -> list[str]:
    """Give the most frequent first parts, and first two; a number is in none."""
    found: dict[int, Counter[str]] = {1: Counter(), 2: Counter()}
    for name, count in names.items():
        parts = name.split(".")
        for length, counter in found.items():
            start = ".".join(parts[:length]) + "."
            if len(parts) > length and "*" not in start:
                counter[start] += count
    return [
        start for counter in found.values() for start in sorted(counter, key=lambda each: (-counter[each], each))[:3]
    ]


def _common_start(names: Sequence[str]) -> str | None:
    """Give the first part that all names have: what rules rename may lie behind it."""
    starts = {name.split(".", 1)[0] for name in names}
    return f"{starts.pop()}." if len(starts) == 1 and len(names) > 1 else None
