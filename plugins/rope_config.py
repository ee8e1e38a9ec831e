"""Reading rotary settings: the two forms that config.json knows, into one value for each kind of layer.

Transformers 4 writes `rope_theta` and `rope_scaling` (its kind under `type` or `rope_type`; null or {} is none);
Transformers 5 writes `rope_parameters`, with the theta inside, or one such section for each layer type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.config import read, refuse_unless
from weightloom.plugins.layers.rope_kinds import (
    DefaultRope,
    DynamicRope,
    LinearRope,
    Llama3Rope,
    RopeKind,
    Rotation,
    YarnRope,
)

KINDS: Mapping[str, type[Any]] = {
    "default": DefaultRope,
    "linear": LinearRope,
    "dynamic": DynamicRope,
    "llama3": Llama3Rope,
    "yarn": YarnRope,
}
FULL = "full_attention"

_RENAMED = {"given_attention_factor": "attention_factor"}
_TAKES_ORIGINAL = (Llama3Rope, YarnRope)


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """How queries and keys of one kind of layer turn: base, dims and trained length, and the kind."""

    rotation: Rotation
    kind: RopeKind


def read_rope(
    content: Mapping[str, Any],
    head_dim: int,
    trained: int,
    default_theta: float = 10000.0,
    layer_types: Iterable[str] = (FULL,),
) -> dict[str, RopeConfig]:
    """Give the settings for each of `layer_types`, from config.json's content.

    `trained` is max_position_embeddings. One section for all layers stands for each type. Raises ConfigError
    that names the field for an unknown kind, a lacking or impossible number, or a layer type without a section.
    """
    name, section = _section(content)
    nested = _is_nested(section)
    found: dict[str, RopeConfig] = {}
    for layer_type in dict.fromkeys(layer_types):
        own, place = _of_layer(section, name, layer_type) if nested else (section, name)
        rotation = _rotation(own, place, content, head_dim, trained, default_theta)
        found[layer_type] = RopeConfig(rotation, _kind(own, place, content))
    return found


def _of_layer(section: Mapping[str, Any], name: str, layer_type: str) -> tuple[Mapping[str, Any], str]:
    """Give the section of a layer type, and where it is."""
    own = section.get(layer_type)
    if not isinstance(own, Mapping):
        raise ConfigError(
            f"{name} has no section for {layer_type!r}",
            expected=f"one for each layer type that the model has; there are {', '.join(sorted(section))}",
            field=f"{name}.{layer_type}",
        )
    return own, f"{name}.{layer_type}"


def _section(content: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Give the section that says the kind, and its name; both forms at once must not contradict each other."""
    sections = {name: content.get(name) for name in ("rope_scaling", "rope_parameters")}
    for name, section in sections.items():
        refuse_unless(section is None or isinstance(section, Mapping), name, section, "an object or null")
    filled = {name: section for name, section in sections.items() if section}
    if len(filled) == 2:
        _refuse_clash(filled["rope_scaling"], filled["rope_parameters"])
        return "rope_scaling", {**filled["rope_parameters"], **filled["rope_scaling"]}
    return next(iter(filled.items()), ("rope_scaling", {}))


def _refuse_clash(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    first, second = ({("rope_type" if k == "type" else k): v for k, v in s.items()} for s in (old, new))
    differing = sorted(key for key in first.keys() & second.keys() if first[key] != second[key])
    if differing:
        key = differing[0]
        raise ConfigError(
            f"rope_scaling says {key} {first[key]!r}, rope_parameters says {second[key]!r}",
            expected="one of the two sections, or the same in both",
            hint="remove the one that is out of date",
            field=f"rope_scaling.{key}",
        )


def _is_nested(section: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Mapping) for value in section.values())


def _rotation(
    section: Mapping[str, Any],
    place: str,
    content: Mapping[str, Any],
    head_dim: int,
    trained: int,
    default_theta: float,
) -> Rotation:
    theta = _number("rope_theta", section, place, content, default_theta)
    part = _number("partial_rotary_factor", section, place, content, 1.0)
    refuse_unless(part <= 1, "partial_rotary_factor", part, "1 at most")
    dims = int(head_dim * part)
    decides = "partial_rotary_factor" if part < 1 else "head_dim"
    refuse_unless(dims > 0 and dims % 2 == 0, decides, dims, "an even number of dims to turn, two at least")
    refuse_unless(theta > 1, "rope_theta", theta, "more than 1")
    refuse_unless(trained > 0, "max_position_embeddings", trained, "a positive number")
    return Rotation(theta, dims, trained)


def _number(name: str, section: Mapping[str, Any], place: str, content: Mapping[str, Any], default: float) -> float:
    """Give a number from the section, else from the top of the config, else the default."""
    source, shown = (section, f"{place}.{name}") if name in section else (content, name)
    value = source.get(name, default)
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    refuse_unless(fine, shown, value, "a positive number")
    return float(value)


def _kind(section: Mapping[str, Any], place: str, content: Mapping[str, Any]) -> RopeKind:
    name = section.get("rope_type") or section.get("type") or "default"
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = get_close_matches(str(name), KINDS, n=1)
        raise ConfigError(
            f"{place} has the unknown type {name!r}",
            expected=f"one of {', '.join(KINDS)}",
            hint=f"did you mean {near[0]!r}?" if near else "a plugin of its own can serve a model that needs it",
            field=f"{place}.rope_type",
        )
    given = {f"{place}.{key}": value for key, value in section.items() if value is not None}
    original = "original_max_position_embeddings"
    if kind in _TAKES_ORIGINAL and content.get(original) is not None:
        given[f"{place}.{original}"] = content[original]
    names = {field: f"{place}.{_RENAMED.get(field, field)}" for field in kind.__dataclass_fields__}
    found: RopeKind = read(kind, given, names)
    found.check(place)
    return found
