"""The dtype that a config states, under either of two names, at the top and in sub-configs.

Nothing is loaded by it: tensors have a dtype of their own in the files. Others go by it who read what is saved, so that
it must name a type, and one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.runtime.configs.config import Config
from weightloom.runtime.configs.dtype_names import float_dtype

FIELDS = ("dtype", "torch_dtype")
_UNDECIDED = "auto"
_OTHERS = (
    *("float64", "double", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("uint8", "int8", "int16", "short", "int32", "int", "int64", "long", "bool", "float4_e2m1fn_x2"),
)
_KNOWN = ("bfloat16", "float16", "float32", *_OTHERS)


def check_dtypes(config: Config) -> None:
    """Raise ConfigError, naming the field, for a dtype that is none, and for one that another field contradicts."""
    for where, section in _sections(config.values):
        found = {f"{where}{field}": section[field] for field in FIELDS if section.get(field) is not None}
        said = {field: _named(value, field, config) for field, value in found.items()}
        types = {dtype for dtype in said.values() if dtype != _UNDECIDED}
        if len(types) > 1:
            (first, one), (second, other) = found.items()
            raise ConfigError(
                f"{first} is {shown(one)} and {second} is {shown(other)}",
                expected="the same in both, or one of them",
                hint="remove the one that is out of date",
                file=config.path,
                field=first,
            )


def _is_sub(name: str, value: object) -> bool:
    return name.endswith("_config") and name != "quantization_config" and isinstance(value, Mapping)


def _sections(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the config and its sub-configs, however deep, each with what is put before its fields."""
    waiting = [("", content)]
    while waiting:
        where, section = waiting.pop(0)
        yield where, section
        waiting += [(f"{where}{name}.", section[name]) for name in sorted(section) if _is_sub(name, section[name])]


def _named(value: object, field: str, config: Config) -> str:
    if isinstance(value, str):
        name = value.strip().rpartition(".")[2].lower()
        known = float_dtype(name) or (name if name in (*_OTHERS, _UNDECIDED) else None)
        if known is not None:
            return known
    near = get_close_matches(str(value), _KNOWN, n=1)
    raise ConfigError(
        f"{field} is {shown(value)}",
        expected="the name of a dtype, such as 'bfloat16', or null",
        hint=f"did you mean {near[0]!r}?" if near else "correct config.json",
        file=config.path,
        field=field,
    )
