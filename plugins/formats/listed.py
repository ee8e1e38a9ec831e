"""Modules that a config lists by name: exactly, from some path on, by a pattern (`re:`), or by their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.engine.mapping.listing import covers
from weightloom.plugins.quantization import SECTION


@dataclass(frozen=True, slots=True)
class Listed:
    """Entries of a list in quantization_config, the `field` that they are in; names are the file's."""

    field: str
    entries: tuple[str, ...]

    @classmethod
    def of(cls, section: Mapping[str, Any], *fields: str) -> Listed:
        """Read the first of some fields that is there; ConfigError where it is no list of names."""
        field = next((name for name in fields if section.get(name) is not None), fields[0])
        found = section.get(field) or []
        if not isinstance(found, Sequence) or isinstance(found, str) or not all(isinstance(e, str) for e in found):
            raise ConfigError(f"{field} is {found!r}", expected="a list of names", field=f"{SECTION}.{field}")
        return cls(field, tuple(found))

    def entry_for(self, module: str) -> str | None:
        """Give the entry that a module path is listed by; None where none is."""
        return next((entry for entry in self.entries if covers(entry, module)), None)

    def refuse(self, weight: str) -> None:
        """Raise ConfigError if the module of a quantized weight is listed."""
        entry = self.entry_for(weight.removesuffix(".weight"))
        if entry is not None:
            raise ConfigError(
                f"{weight} is stored as codes, and {self.field} lists {entry!r}",
                expected="modules that are listed as not quantized to be stored as floats",
                hint=f"correct {SECTION}.{self.field}, or get the file that belongs to it",
                field=f"{SECTION}.{self.field}",
            )
