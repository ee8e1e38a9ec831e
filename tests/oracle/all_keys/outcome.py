"""What came of a comparison, and the table of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["ok", "ok, dtypes kept", "differs", "not built", "no such model"]
MEANING: Mapping[Kind, str] = {
    "ok": "names, shapes, dtypes and bytes are the reference implementation's; on the way back, the file's",
    "ok, dtypes kept": "the same, but that it changes dtypes; ours are the file's, and its values are ours cast",
    "differs": "something is not the same",
    "not built": "no tiny model can be had",
    "no such model": "the key names no model of the reference implementation",
}


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
    """Show what is not ok, then the count of each outcome."""
    listed = list(outcomes)
    for each in sorted(listed, key=lambda each: (each.kind, each.job.lower())):
        if each.reasons:
            yield f"{each.kind}: {each.job}"
            yield from (f"    {reason}" for reason in each.reasons)
    counts = Counter(each.kind for each in listed)
    yield from (f"{counts[kind]:5} {kind}: {meaning}" for kind, meaning in MEANING.items() if counts[kind])
    noted = Counter(note for each in listed for note in each.notes)
    yield from (f"{count:5} of them: {note}" for note, count in sorted(noted.items()))
    yield f"{len(listed):5} in all"
