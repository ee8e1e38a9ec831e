"""Fact: one thing that decided what a checkpoint is, and where it was read."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """What was found, in words; `field` is the field that says so, `file` the file it is in, where there is one."""

    text: str
    field: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.text} in {self.file}" if self.file else self.text

    def to_json(self) -> dict[str, str | None]:
        """Give it as JSON values."""
        return asdict(self)
