"""What sentence-transformers' files put after a model: the steps of modules.json, by their kinds alone.

Format: the Sentence Transformers documentation, "Creating Custom Models"; each entry names a class (`type`) and a
folder (`path`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the last part of its class's name, and the folder that it is in ("" for the model's own)."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps in their order, and the file that lists them (or, without a list, that has the pooling's settings)."""

    listed: tuple[Step, ...]
    file: str

    def have(self, kind: str) -> bool:
        """Say whether one of the steps is of a kind."""
        return any(step.kind == kind for step in self.listed)
