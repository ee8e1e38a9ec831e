"""config.json beside the weights: read strictly, with each field that decides something checked."""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.errors import CheckpointError
from weightloom.engine.os_errors import storage_error
from weightloom.engine.show import shown
from weightloom.runtime.configs.config_text import repaired

NAME = "config.json"
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Config:
    """A config: where it is, its bytes as they are, its values, and what had to be repaired to read them.

    The properties raise CheckpointError.
    """

    path: Path
    raw: bytes
    values: Mapping[str, Any]

    @property
    def repairs(self) -> tuple[str, ...]:
        """What is no JSON in the text, and what was made of it; () where it is strict JSON."""
        return repaired(self.raw.decode()).repairs

    @property
    def saved(self) -> bytes:
        """The bytes to save: those that were read, made strict JSON where they are not."""
        return repaired(self.raw.decode()).strict.encode() if self.repairs else self.raw

    @property
    def model_type(self) -> str | None:
        """The field `model_type`, or None where there is none."""
        return self._text("model_type") if "model_type" in self.values else None

    @property
    def class_name(self) -> str | None:
        """The first of `architectures`, or None where it is absent, null or empty."""
        found = self.values.get("architectures")
        if found is None or found == []:
            return None
        if not (isinstance(found, list) and all(isinstance(name, str) and name for name in found)):
            raise self._bad("architectures", found, "a list of class names")
        return str(found[0])

    @property
    def quantization(self) -> str | None:
        """The method that `quantization_config` (or MLX's `quantization`) names, or None where neither is."""
        for field in ("quantization_config", "quantization"):
            found = self.values.get(field)
            if isinstance(found, dict):
                sizes = (found.get("bits"), found.get("group_size"))
                known = f"{sizes[0]} bits in groups of {sizes[1]}" if all(sizes) else f"no method named, in {field!r}"
                return str(found.get("quant_method", known))
        return None

    def _text(self, field: str) -> str:
        value = self.values[field]
        if not (isinstance(value, str) and value.strip()):
            raise self._bad(field, value, "a name, like 'llama'")
        return value

    def _bad(self, field: str, value: object, expected: str) -> CheckpointError:
        text = "null" if value is None else shown(value)
        hint = f"correct {field}, or say --model-type NAME"
        return CheckpointError(f"{field} is {text}", expected=expected, hint=hint, file=self.path, field=field)


def find_config(checkpoint: Path) -> Config | None:
    """Read the config in a checkpoint's directory or beside its file; None where there is none."""
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    path = folder / NAME
    return read_config(path) if path.exists() or path.is_symlink() else None


def read_config(path: Path) -> Config:
    """Read a config. Raises CheckpointError unless it is one JSON object, StorageError where reading fails."""
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise CheckpointError("the config is not a regular file", expected="a file with a JSON object", file=path)
        if path.stat().st_size > _MAX_BYTES:
            raise CheckpointError("the config is too large", expected=f"at most {_MAX_BYTES} bytes", file=path)
        raw = path.read_bytes()
    except OSError as error:
        raise storage_error("read", path, error) from error
    return Config(path, raw, parse(raw, path))


def parse(raw: bytes, path: Path) -> Mapping[str, Any]:
    """Read one JSON object, repaired as `repaired` does. Raises CheckpointError."""
    try:
        value = json.loads(repaired(raw.decode()).readable, object_pairs_hook=_unique)
    except _Twice as error:
        seen = f"the field {shown(error.name)} is there twice"
        raise CheckpointError(seen, expected="each field once", file=path, field=error.name) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _not_json(error, path) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"the config is not an object: {shown(value)}", expected="a JSON object", file=path)
    return value


class _Twice(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _unique(pairs: list[tuple[str, Any]]) -> Any:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _Twice(next(name for name, seen in Counter(name for name, _ in pairs).items() if seen > 1))
    return plain_number(values)


def plain_number(found: dict[str, Any]) -> Any:
    """Give the number that an object of Transformers 5 stands for, which JSON has no digits for; others as they are."""
    text = found.get("__float__")
    return float(text) if len(found) == 1 and text in ("Infinity", "-Infinity", "NaN") else found


def _not_json(error: Exception, path: Path) -> CheckpointError:
    if isinstance(error, UnicodeDecodeError):
        why = f"{error.reason} at byte {error.start}"
    elif isinstance(error, json.JSONDecodeError):
        why = f"{error.msg}, line {error.lineno} column {error.colno}"
    else:
        why = "nested too deeply, or a number of thousands of digits"
    return CheckpointError(
        f"the config is not JSON: {why}",
        expected="a JSON object in UTF-8",
        hint="download or write it again",
        file=path,
    )
