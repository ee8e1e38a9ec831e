"""One look at a rule file after a save: what it makes of the checkpoint, and what is otherwise than before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weightloom.engine.planning.report import LoadReport
from weightloom.runtime.authoring.differences import Differences, counts, differences
from weightloom.runtime.authoring.faults import Fault
from weightloom.runtime.authoring.replan import Replanned
from weightloom.runtime.terminal.text import plural

_FEW = 6


@dataclass(frozen=True)
class Look:
    """A plan, or what kept it from being made; `lines` are those of the file, `seconds` what it took."""

    found: Replanned
    changed: Differences
    file: tuple[str, ...]
    seconds: float

    __hash__ = None  # type: ignore[assignment]  # a plan holds mappings

    def text(self) -> Iterator[str]:
        """Give it as lines for people."""
        if self.found.plan is None:
            yield f"{plural(len(self.found.faults), 'fault')}, no plan ({self.seconds:.2f} s)"
            yield from self._faults(self.found.faults)
            return
        report, sources = self.found.plan.report, len(self.found.plan.sources)
        said = ", ".join(f"{count:,} {kind}" for kind, count in counts(report).items() if count)
        loads = "would load" if self.found.error is None else "would not load"
        yield f"{loads}: {plural(sources, 'tensor')}, {said or 'all mapped'} ({self.seconds:.2f} s)"
        yield from self._faults((*self.found.misfits, *self.found.warnings)[:_FEW])
        yield from self.changed.lines()

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON values."""
        plan = self.found.plan
        return {
            "layout": self.found.layout,
            "would_load": plan is not None and self.found.error is None,
            "seconds": round(self.seconds, 3),
            "tensors": None if plan is None else len(plan.sources),
            "counts": None if plan is None else counts(plan.report),
            "changed": self.changed.to_json(),
            "faults": [self._with_line(fault) for fault in self.found.faults],
            "misfits": [self._with_line(fault) for fault in self.found.misfits],
            "warnings": [self._with_line(fault) for fault in self.found.warnings],
        }

    def _faults(self, faults: tuple[Fault, ...]) -> Iterator[str]:
        for fault in faults:
            place, *rest = str(fault).splitlines()
            yield place
            line = self._line(fault)
            if line is not None:
                number = f"{fault.line:>5} | "
                yield f"{number}{line}"
                yield " " * (len(number) + fault.column - 1) + "^"
            yield from rest

    def _line(self, fault: Fault) -> str | None:
        return self.file[fault.line - 1] if 0 < fault.line <= len(self.file) else None

    def _with_line(self, fault: Fault) -> dict[str, Any]:
        return {**fault.to_json(), "text": self._line(fault)}


def look_of(found: Replanned, before: LoadReport | None, text: bytes, seconds: float) -> Look:
    """Put a look together; `before` is the report of the last plan that there was."""
    changed = Differences() if found.plan is None else differences(before, found.plan.report)
    lines = tuple(text.decode("utf-8", "replace").splitlines())
    return Look(found, changed, lines, seconds)
