"""Verdict: what the laws say of a sample, and how far its answers lie from those that are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weightloom.runtime.conformance.laws import LAWS, Law
from weightloom.runtime.conformance.sample import Sample
from weightloom.runtime.conformance.subject import Subject, make_subject

MEASURED = tuple(law.measures for law in LAWS if law.measures)


@dataclass(frozen=True)
class Verdict:
    """The largest difference of each kind of answer, as a part of max(1, max |wanted|), and the laws that are broken.

    Kinds are `MEASURED`; one that a sample does not have is not there. `broken` are a law's name and what it said.
    """

    sample: str
    differences: Mapping[str, float]
    broken: tuple[str, ...] = ()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def __str__(self) -> str:
        numbers = "".join(_cell(self.differences.get(kind)) for kind in MEASURED)
        return "\n".join([f"{numbers}  {self.sample}", *(f"    BROKEN {each}" for each in self.broken)])


def head() -> str:
    """Give the head of a table whose rows are verdicts."""
    return "".join(f"{kind:>9}" for kind in MEASURED) + "  sample"


def _cell(difference: float | None) -> str:
    """Write a difference as a cell of such a table."""
    return f"{'-':>9}" if difference is None else f"{difference:>9.1e}"


def judge(sample: Sample, folder: Path, laws: Iterable[Law] = LAWS) -> Verdict:
    """Hold a sample to laws; its files go below an empty directory. What cannot be written breaks all of them."""
    try:
        subject = make_subject(sample, folder)
    except Exception as error:
        return Verdict(sample.name, {}, (f"checkpoint: {_said(error)}",))
    found = [(law, *_held(law, subject)) for law in laws if not law.spares(subject)]
    differences = {law.measures: number for law, number, _ in found if law.measures and number is not None}
    return Verdict(sample.name, differences, tuple(f"{law.name}: {said}" for law, _, said in found if said))


def _held(law: Law, subject: Subject) -> tuple[float | None, str]:
    """Give what a law measured, and what it said where it is broken."""
    try:
        return law.check(subject), ""
    except Exception as error:
        return None, _said(error)


def measured_samples(reports: Iterable[tuple[str, Iterable[tuple[str, object]]]]) -> list[Verdict]:
    """Gather what tests measured: their ids (file::Class::test_law[sample-law]), each with the properties it has."""
    found: dict[str, dict[str, float]] = {}
    for node, properties in reports:
        name, test = node.split("::")[-2:] if "::" in node else ("", node)
        numbers = {kind: number for kind, number in properties if kind in MEASURED and isinstance(number, float)}
        if numbers:
            found.setdefault(f"{name}: {test.partition('[')[2].rpartition('-')[0]}", {}).update(numbers)
    return [Verdict(sample, numbers) for sample, numbers in found.items()]


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
