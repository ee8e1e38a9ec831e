"""Numbers of a config as people have them: in quotes, whole but with a point, or null. Repaired by field, and named.

What a family reads is declared by the dataclass of its fields; only what that, or the sections that all families have
alike, want as a number or a list of numbers is looked at. A null for a number, or for true or false, is left out, so
that the field's own default stands; without a default it stays, and is refused where it is read.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from weightloom.engine.show import shown
from weightloom.plugins.configs.config import hints_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a field wants: int, float or bool, or a list of them; `optional` where a null stands for its default."""

    kind: type
    optional: bool = False
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Repair:
    """A field that is read otherwise than it is written, and how, in words."""

    field: str
    how: str

    def __str__(self) -> str:
        return f"{self.field} {self.how}"


@dataclass(frozen=True)
class Repaired:
    """config.json's content as it is read, and what was repaired, one a field; () where nothing was."""

    content: Mapping[str, Any]
    repairs: tuple[Repair, ...] = field(default=())

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


_ROPE: Mapping[str, Wanted] = {
    "rope_theta": Wanted(float, optional=True),
    "partial_rotary_factor": Wanted(float, optional=True),
    "original_max_position_embeddings": Wanted(int),
    **dict.fromkeys(("factor", "low_freq_factor", "high_freq_factor", "attention_factor"), Wanted(float)),
    **dict.fromkeys(("beta_fast", "beta_slow", "mscale", "mscale_all_dim"), Wanted(float)),
    **dict.fromkeys(("short_factor", "long_factor"), Wanted(float, listed=True)),
}
_PACKING: Mapping[str, Wanted] = {"group_size": Wanted(int), "bits": Wanted(int)}
# What sections want, and the sections by layer type or by module that are in them.
_SECTIONS = {
    "rope_scaling": _ROPE,
    "rope_parameters": _ROPE,
    "quantization": _PACKING,
    "quantization_config": {**_PACKING, "weight_block_size": Wanted(int, listed=True)},
}
# Fields that readers shared by the families take, beside those of the dataclasses.
_SHARED: Mapping[str, Wanted] = {
    "rope_theta": Wanted(float, optional=True),
    "rope_local_base_freq": Wanted(float, optional=True),
    "partial_rotary_factor": Wanted(float, optional=True),
    "original_max_position_embeddings": Wanted(int),
    "num_local_experts": Wanted(int),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


def repaired_numbers(fields: type[Any], content: Mapping[str, Any]) -> Repaired:
    """Repair the fields of a config that `fields`, or its rotary settings or packing, want as numbers.

    What `fields` says of a number is so in a section too: one that may be null, because that says something, stays.
    """
    own = dict(_wanted(fields))
    made = _of_object(content, {**_SHARED, **own}, "")
    sections = {name: _of_section(name, made.content[name], own) for name in _SECTIONS if name in made.content}
    found = {**made.content, **{name: value for name, (value, _) in sections.items()}}
    return Repaired(found, (*made.repairs, *(repair for _, repairs in sections.values() for repair in repairs)))


def _wanted(fields: type[Any]) -> Iterator[tuple[str, Wanted]]:
    """Give what each field wants that wants a number; one that takes null too has no use for a default."""
    hints = hints_of(fields)
    for each in dataclasses.fields(fields):
        options = get_args(hints[each.name]) if _is_union(hints[each.name]) else (hints[each.name],)
        kinds = [option for option in options if option is not NoneType]
        listed = len(kinds) == 1 and get_origin(kinds[0]) is tuple
        kind = get_args(kinds[0])[0] if listed else kinds[0]
        if len(kinds) == 1 and kind in (int, float, bool):
            nullable = NoneType in options or each.default is dataclasses.MISSING
            yield each.name, Wanted(kind, optional=not nullable, listed=listed)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _of_section(name: str, section: Any, own: Mapping[str, Wanted]) -> tuple[Any, tuple[Repair, ...]]:
    """Repair a section, and each of those that are in it."""
    if not isinstance(section, Mapping):
        return section, ()
    wanted = {field: own.get(field, want) for field, want in _SECTIONS[name].items()}
    flat = _of_object(section, wanted, f"{name}.")
    nested = sorted(key for key, value in section.items() if isinstance(value, Mapping))
    parts = {key: _of_object(section[key], wanted, f"{name}.{key}.") for key in nested}
    repairs = (*flat.repairs, *(repair for part in parts.values() for repair in part.repairs))
    return {**flat.content, **{key: part.content for key, part in parts.items()}}, repairs


def _of_object(content: Mapping[str, Any], wanted: Mapping[str, Wanted], where: str) -> Repaired:
    made, repairs = dict(content), []
    for name, want in wanted.items():
        if name not in content:
            continue
        if content[name] is None and want.optional:
            del made[name]
            what = "true or false" if want.kind is bool else "a list" if want.listed else "a number"
            repairs.append(Repair(f"{where}{name}", f"is null where {what} is wanted; read as if it were absent"))
        elif want.listed and isinstance(content[name], list):
            made[name] = [_number(item, want.kind) for item in content[name]]
            places = (f"{where}{name}[{index}]" for index in range(len(made[name])))
            repairs += _changed(places, content[name], made[name])
        elif not want.listed:
            made[name] = _number(content[name], want.kind)
            repairs += _changed([f"{where}{name}"], [content[name]], [made[name]])
    return Repaired(made, tuple(repairs))


def _changed(places: Iterable[str], before: Iterable[Any], after: Iterable[Any]) -> Iterator[Repair]:
    for place, old, new in zip(places, before, after, strict=True):
        if new is not old:
            yield Repair(place, f"is {shown(old)}; read as the number {new}")


def _number(value: Any, kind: type) -> Any:
    """Give the number that a value stands for, the very value where it stands for none."""
    if kind is int and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if not isinstance(value, str) or kind is bool:
        return value
    text = value.strip()
    if kind is int:
        return int(text) if _INTEGER.fullmatch(text) else value
    number = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return number if math.isfinite(number) else value
