"""Reading a model's config strictly: a field of the wrong type is an error that names it, not a surprise later.

A family's config is a frozen dataclass. `read` fills it from config.json's content by field name: a field
without a default must be there; None is taken only where the type allows it; an int may stand for a float; an
unknown field is left for the report (`unread_fields`), since real configs hold many that no forward pass needs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from math import isnan
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from weightloom.engine.errors import ConfigError

T = TypeVar("T")

# The largest float32: what is computed with the numbers of a config has no larger ones.
_LARGEST_FLOAT = (2 - 2**-23) * 2.0**127


def read(cls: type[T], content: Mapping[str, Any], names: Mapping[str, str] | None = None) -> T:
    """Make a config of dataclass `cls` from config.json's content; `names` maps a field to the name it has there.

    Raises ConfigError, naming the field, for one that lacks or has a value of another type.
    """
    hints = hints_of(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        name = (names or {}).get(field.name, field.name)
        if name in content:
            values[field.name] = _checked(name, content[name], hints[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            near = get_close_matches(name, content, n=1, cutoff=0.8)
            raise ConfigError(
                f"the config has no {name!r}",
                expected=f"{name}: {_shown(hints[field.name])}",
                hint=f"it has {near[0]!r}: is that the one?" if near else "complete config.json",
                field=name,
            )
    return cls(**values)


def hints_of(cls: type[Any]) -> Mapping[str, Any]:
    """Give the types of a dataclass's fields, worked out once: that takes longer than all that is done with them."""
    return _hints(cast("Hashable", cls))


@lru_cache(maxsize=256)
def _hints(cls: Hashable) -> Mapping[str, Any]:
    return MappingProxyType(get_type_hints(cls))


def unread_fields(cls: type[Any], content: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the fields of a config.json that the dataclass does not read, sorted."""
    return tuple(sorted(set(content) - {field.name for field in dataclasses.fields(cls)}))


def refuse_unless(condition: bool, field: str, seen: Any, expected: str) -> None:
    """Raise ConfigError for a value that a family cannot run with."""
    if not condition:
        raise ConfigError(f"{field} is {seen!r}", expected=expected, field=field)


def _checked(name: str, value: Any, hint: Any) -> Any:
    found = _fitting(value, hint)
    if found is not _UNFIT:
        return found
    raise ConfigError(
        f"{name} is {value!r}", expected=f"{name}: {_shown(hint)}", hint="correct config.json", field=name
    )


_UNFIT = object()


def _fitting(value: Any, hint: Any) -> Any:
    """Give the value as the type wants it, or _UNFIT."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return next((found for each in inner if (found := _fitting(value, each)) is not _UNFIT), _UNFIT)
    if origin is Literal:
        return value if value in inner else _UNFIT
    if hint is Any:
        return value
    if hint is NoneType:
        return None if value is None else _UNFIT
    if origin is tuple and isinstance(value, list):
        items = [_listed(item, inner[0]) for item in value]
        return _UNFIT if any(item is _UNFIT for item in items) else tuple(items)
    if origin in (Mapping, dict) or hint is dict:
        return value if isinstance(value, Mapping) else _UNFIT
    return _plain(value, hint)


def _listed(item: Any, hint: Any) -> Any:
    """Give an entry of a list, where one beyond all numbers stands for no limit: published configs have 1e308."""
    return item if hint is float and isinstance(item, float) and not isnan(item) else _fitting(item, hint)


def _plain(value: Any, hint: Any) -> Any:
    if isinstance(value, bool) or hint is bool:
        return value if hint is bool and isinstance(value, bool) else _UNFIT
    if hint is float and isinstance(value, int | float):
        return float(value) if abs(value) <= _LARGEST_FLOAT else _UNFIT
    if hint is int and isinstance(value, int):
        return value
    return value if hint is str and isinstance(value, str) else _UNFIT


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
