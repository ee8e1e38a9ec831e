"""Every error that weightloom raises on purpose.

    WeightloomError
    ├── CheckpointError     a file, header, index or source is not what it claims
    ├── RuleError           a rule or a rule file says something the engine cannot do
    ├── PlanError           rules, checkpoint and parameters do not fit each other
    │   └── NotInvertible   there is no way back, so a save is refused before anything is written
    ├── PluginError         a plugin cannot be found, imported or used
    ├── ConfigError         a model's config lacks a field, or has one that cannot be
    ├── StorageError        reading, writing, syncing or replacing files failed (disk full, permission, ...)
    ├── MissingExtra        an optional dependency is needed and not installed
    └── UsageError          the call itself is off: an unknown layout, a target that is not empty, ...

An error is one block of text: what was seen, what was expected, what to do. The facts that it is about
(file, tensor, rule, field) are attributes, so that callers need not parse the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class WeightloomError(Exception):
    """What was seen, what was expected, what to do; `file`, `tensor`, `rule`, `field` name what it is about."""

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        seen: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
        file: str | Path | None = None,
        tensor: str | None = None,
        rule: str | None = None,
        field: str | None = None,
    ) -> None:
        self.seen = seen
        self.expected = expected
        self.hint = hint
        self.file = None if file is None else str(file)
        self.tensor = tensor
        self.rule = rule
        self.field = field
        super().__init__(self._text())

    def _text(self) -> str:
        place = f"{self.file}: " if self.file else ""
        lines = [place + self.seen]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.hint:
            lines.append(f"  to do: {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, str | None]:
        """Give the facts as JSON values, keys as the attributes plus `kind` and `message`."""
        names = ("seen", "expected", "hint", "file", "tensor", "rule", "field")
        return {
            "kind": type(self).__name__,
            "message": str(self),
            **{name: getattr(self, name) for name in names},
        }


class CheckpointError(WeightloomError):
    """A checkpoint's file, header, index or source is not what it claims to be."""


class RuleError(WeightloomError):
    """A rule or a rule file says something that the engine cannot do."""


class PlanError(WeightloomError):
    """Rules, checkpoint and parameters do not fit each other."""


class NotInvertible(PlanError):
    """There is no exact way back; nothing has been written."""


class PluginError(WeightloomError):
    """A plugin cannot be found, imported or used."""


class ConfigError(WeightloomError):
    """A model's config lacks a field, or has a value in it that cannot be."""


class StorageError(WeightloomError):
    """The file system refused: disk full, permission, read error."""

    exit_code: ClassVar[int] = 3


class MissingExtra(WeightloomError):
    """An optional dependency is needed and not installed."""

    exit_code: ClassVar[int] = 4


class UsageError(WeightloomError):
    """The call is off: an unknown layout name, a target directory that is not empty, ..."""

    exit_code: ClassVar[int] = 2
