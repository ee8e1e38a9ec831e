"""Reading rotary settings, wherever the config has them, into one value for each kind of layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.long_rope import LongRope
from weightloom.plugins.configs.rope_kinds import DefaultRope, DynamicRope, LinearRope, Llama3Rope, ProportionalRope
from weightloom.plugins.configs.rope_sections import Section, rope_sections
from weightloom.plugins.configs.rotation import RopeKind, Rotation
from weightloom.plugins.configs.yarn_rope import YarnRope

KINDS: Mapping[str, type[Any]] = {
    "default": DefaultRope,
    "linear": LinearRope,
    "dynamic": DynamicRope,
    "llama3": Llama3Rope,
    "yarn": YarnRope,
    "longrope": LongRope,
    "proportional": ProportionalRope,
}

_RENAMED = {"given_attention_factor": "attention_factor"}


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
    default_part: float = 1.0,
) -> dict[str, RopeConfig]:
    """Give the settings for each of `layer_types`, from config.json's content.

    `trained` is max_position_embeddings; a config that is silent turns `default_part` of the dims. One section for all
    layers stands for each type. Raises ConfigError that names the field for an unknown kind, a lacking or impossible
    number, two that differ, or a layer type without a section.
    """
    sections = rope_sections(content, layer_types)
    found = {
        layer_type: RopeConfig(_rotation(section, head_dim, trained, default_theta, default_part), _kind(section))
        for layer_type, section in sections.items()
    }
    for layer_type, rope in found.items():
        if isinstance(rope.kind, LongRope):
            rope.kind.check_dims(sections[layer_type].place, rope.rotation.dims)
    return found


def refuse_changing(config: RopeConfig) -> None:
    """Raise ConfigError for a rope whose frequencies change with the length of the context."""
    contexts = {config.kind.context(config.rotation, length) for length in (1, 2**40)}
    refuse_unless(
        len(contexts) == 1,
        "rope_type",
        type(config.kind).__name__,
        "a rope whose frequencies are the same at every length",
    )


def _rotation(section: Section, head_dim: int, trained: int, default_theta: float, default_part: float) -> Rotation:
    theta = _number("rope_theta", section, default_theta)
    # A kind that has the share for a field of its own turns whole heads by it.
    own = section.value("rope_type") == "proportional"
    part = 1.0 if own else _number("partial_rotary_factor", section, default_part)
    refuse_unless(part <= 1, "partial_rotary_factor", part, "1 at most")
    dims = int(head_dim * part)
    even = dims > 0 and dims % 2 == 0
    share = f"a share of head_dim {head_dim} that is an even number of dims, two at least, not {dims}"
    refuse_unless(even or part == 1, section.field("partial_rotary_factor"), part, share)
    refuse_unless(even, "head_dim", dims, "an even number of dims to turn, two at least")
    refuse_unless(theta > 1, "rope_theta", theta, "more than 1")
    refuse_unless(trained > 0, "max_position_embeddings", trained, "a positive number")
    return Rotation(theta, dims, trained)


def _number(name: str, section: Section, default: float) -> float:
    value = section.value(name, default)
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    refuse_unless(fine, section.field(name), value, "a positive number")
    return float(value)


def _kind(section: Section) -> RopeKind:
    name = section.value("rope_type")
    name = "default" if name is None else name
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = get_close_matches(str(name), KINDS, n=1)
        raise ConfigError(
            f"{section.field('rope_type')} is the unknown type {name!r}",
            expected=f"one of {', '.join(KINDS)}",
            hint=f"did you mean {near[0]!r}?" if near else "a plugin of its own can serve a model that needs it",
            field=section.field("rope_type"),
        )
    names = {field: section.field(_RENAMED.get(field) or field) for field in kind.__dataclass_fields__}
    given = {setting.field: setting.value for setting in section.settings.values() if setting.value is not None}
    found: RopeKind = read(kind, given, names)
    found.check(section.place)
    return found
