"""A GGUF's keys, asked for by name and type; what is off is a ConfigError that names the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown


@dataclass(frozen=True)
class Fields:
    """The keys of one GGUF file; `file` is what messages call it."""

    values: Mapping[str, Any]
    file: str

    def whole(self, key: str, default: int | None = None) -> int:
        """Give a whole number from 0 up."""
        value = self.values.get(key, default)
        if type(value) is not int or value < 0:
            raise self.bad(key, "a whole number, one for all layers")
        return value

    def at_least_one(self, key: str) -> int:
        """Give a whole number from 1 up."""
        value = self.whole(key)
        if value == 0:
            raise self.bad(key, "one at least")
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        """Give a number above 0, in the shortest decimal form of the same float32: 1e-05, not 9.99999974e-06."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-30 < value < 1e30:
            raise self.bad(key, "a number above 0")
        return float(str(np.float32(value)))

    def text(self, key: str, default: str | None = None) -> str:
        """Give a text."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.bad(key, "a text")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Give a bool."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def many(self, key: str, kind: type, count: int | None = None) -> tuple[Any, ...]:
        """Give an array of one kind, of `count` entries if that is given."""
        values = self.values.get(key)
        if not isinstance(values, tuple) or not all(type(value) is kind for value in values):
            raise self.bad(key, f"an array of {kind.__name__}")
        if count is not None and len(values) != count:
            raise self.bad(key, f"{count} entries, one for each token")
        return values

    def bad(self, key: str, expected: str) -> ConfigError:
        """Give the error for a key whose value will not do."""
        seen = f"{key} is {shown(self.values[key])}" if key in self.values else f"there is no {key}"
        return ConfigError(seen, expected=expected, hint="get the model again, or elsewhere", file=self.file, field=key)
