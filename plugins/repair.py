"""Numbers of a config as people have them: in quotes, whole but with a point, or null. Repaired by field, and named.

What a family reads is declared by the dataclass of its fields; only what that, or the rotary settings, want as a
number is looked at. A null is left out, so that the field's own default stands; without a default it stays, and is
refused where it is read.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from weightloom.engine.show import shown

# Fields that readers shared by the families take, beside those of the dataclasses.
_SHARED: Mapping[str, type] = {
    "rope_theta": float,
    "partial_rotary_factor": float,
    "original_max_position_embeddings": int,
    "num_local_experts": int,
}
_ROPE_SECTIONS = ("rope_scaling", "rope_parameters")
_ROPE: Mapping[str, type] = {
    "rope_theta": float,
    "partial_rotary_factor": float,
    "original_max_position_embeddings": int,
    **dict.fromkeys(("factor", "low_freq_factor", "high_freq_factor", "attention_factor"), float),
    **dict.fromkeys(("beta_fast", "beta_slow", "mscale", "mscale_all_dim"), float),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_LEFT_OUT = object()


@dataclass(frozen=True)
class Repaired:
    """config.json's content as it is read, and what was repaired, one a field; () where nothing was."""

    content: Mapping[str, Any]
    repairs: tuple[str, ...] = field(default=())

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def repaired_numbers(fields: type[Any], content: Mapping[str, Any]) -> Repaired:
    """Repair the fields of a config that dataclass `fields`, or the rotary settings, want as numbers."""
    wanted = {**_SHARED, **dict(_numbers(fields))}
    optional = {"rope_theta", "partial_rotary_factor", *_defaulted(fields)}
    made = _of_object(content, wanted, optional, "")
    sections = [_of_section(name, made.content[name]) for name in _ROPE_SECTIONS if name in made.content]
    found = {**made.content, **{name: each.content["value"] for name, each in sections}}
    return Repaired(found, (*made.repairs, *(repair for _, each in sections for repair in each.repairs)))


def _numbers(fields: type[Any]) -> Iterator[tuple[str, type]]:
    """Give each field that wants a number, and which; one that takes null too is among them."""
    for name, hint in get_type_hints(fields).items():
        options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kinds = [each for each in options if each is not NoneType]
        if kinds in ([int], [float]):
            yield name, kinds[0]


def _defaulted(fields: type[Any]) -> Iterator[str]:
    """Give the fields that want a number, take no null, and have a default for one that lacks."""
    hints = get_type_hints(fields)
    for each in dataclasses.fields(fields):
        if hints[each.name] in (int, float) and each.default is not dataclasses.MISSING:
            yield each.name


def _of_section(name: str, section: Any) -> tuple[str, Repaired]:
    """Repair a section of rotary settings, or each of its sections by layer type."""
    if not isinstance(section, Mapping):
        return name, Repaired({"value": section})
    parts = {key: _of_object(value, _ROPE, {"rope_theta"}, f"{name}.{key}.")
             for key, value in section.items() if isinstance(value, Mapping)}  # fmt: skip
    flat = _of_object(section, _ROPE, {"rope_theta"}, f"{name}.")
    value = {**flat.content, **{key: part.content for key, part in parts.items()}}
    return name, Repaired({"value": value}, (*flat.repairs, *(r for part in parts.values() for r in part.repairs)))


def _of_object(content: Mapping[str, Any], wanted: Mapping[str, type], optional: set[str], where: str) -> Repaired:
    made, repairs = dict(content), []
    for name in [each for each in wanted if each in content]:
        found = _number(content[name], wanted[name], name in optional)
        if found is _LEFT_OUT:
            del made[name]
            repairs.append(f"{where}{name} is null where a number is wanted; read as if it were absent")
        elif found is not content[name]:
            made[name] = found
            repairs.append(f"{where}{name} is {shown(content[name])}; read as the number {found}")
    return Repaired(made, tuple(repairs))


def _number(value: Any, kind: type, optional: bool) -> Any:
    """Give the number that a value stands for, the very value where it stands for none, _LEFT_OUT for a null."""
    if value is None and optional:
        return _LEFT_OUT
    if kind is int and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if kind is int:
        return int(text) if _INTEGER.fullmatch(text) else value
    number = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return number if math.isfinite(number) else value
