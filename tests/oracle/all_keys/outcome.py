"""What came of a comparison, and the table of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["ok", "differs", "not built"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One job's result; `reasons` say what differs or why it was not built, `notes` what else there is to know."""

    job: str
    kind: Kind
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def write(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write the outcomes as JSON, by job."""
    found = {each.job: asdict(each) for each in outcomes}
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def lines(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Show what is not ok, then the counts."""
    listed = list(outcomes)
    for each in sorted(listed, key=lambda each: (each.kind, each.job.lower())):
        if each.kind != "ok":
            yield f"{each.kind}: {each.job}"
            yield from (f"    {reason}" for reason in each.reasons)
    counts = Counter(each.kind for each in listed)
    yield ", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items()))
    noted = Counter(note for each in listed for note in each.notes)
    yield from (f"  {note}: {count}" for note, count in sorted(noted.items()))
