"""config.json as a layout's readers want it.

mlx-lm looks for the rotary settings where configs had them before Transformers 5: `rope_theta`, `rope_scaling` and
`partial_rotary_factor` beside the sizes, `rope_local_base_freq` for sliding layers; and infinity as a number, not as
Transformers 5 spells it. Other
fields are rule data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weightloom.rules.config_fields import Wanted
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.configs.config import plain_number
from weightloom.runtime.configs.config_text import repaired, strict_json
from weightloom.runtime.configs.installed import installed_architecture
from weightloom.runtime.configs.repairs import repaired_fields
from weightloom.runtime.opening.layout_record import MLX

_ROPE = "rope_parameters"
_BESIDE = ("rope_theta", "partial_rotary_factor")
_LAYER_KINDS = {"full_attention": "rope_theta", "sliding_attention": "rope_local_base_freq"}


def config_in(layout: str, choice: Choice, raw: bytes) -> bytes:
    """Give a config for weights in a layout: as it is, but for repairs and fields that its readers look for.

    Raises RuleError for an expression in rule data that the config does not fit.
    """
    from weightloom.rules import registry

    known = choice.identifier if choice.identifier in registry else None
    wanted = registry.config_fields(known, layout) if known else {}
    if layout != MLX and not wanted and choice.layout != MLX:
        return raw
    text = repaired(raw.decode()).strict
    before: dict[str, Any] = json.loads(text)
    reader = installed_architecture(before)
    numbers = repaired_fields(reader, json.loads(text, object_hook=plain_number)) if layout == MLX else before
    plain = with_plain_rope(numbers) if layout == MLX else before
    after = with_fields(plain, wanted, repaired_fields(reader, before))
    return text.encode() if after == before else strict_json(after)


def with_fields(
    config: Mapping[str, Any], fields: Mapping[str, Wanted], published: Mapping[str, Any]
) -> dict[str, Any]:
    """Set fields to what expressions over the published config give; a dotted field lies in a sub-config.

    What an expression gives as null is left alone, and a sub-config that is not there.
    """
    found = dict(config)
    for name, expression in fields.items():
        value = expression.value(published)
        if value is not None:
            found = _set(found, name.split("."), value)
    return found


def _set(config: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {**config, first: value}
    inner = config.get(first)
    return {**config, first: _set(inner, rest, value)} if isinstance(inner, Mapping) else dict(config)


def with_plain_rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """Give the config with rotary settings beside the sizes too, in sub-configs alike; fields that are there stay."""
    inner = {
        name: with_plain_rope(value)
        for name, value in config.items()
        if name.endswith("_config") and isinstance(value, Mapping)
    }
    rope = config.get(_ROPE)
    lifted = _lifted(rope) if isinstance(rope, Mapping) else {}
    return {**lifted, **config, **{name: lifted[name] for name in lifted if config.get(name) is None}, **inner}


def _lifted(rope: Mapping[str, Any]) -> dict[str, Any]:
    if any(kind in rope for kind in _LAYER_KINDS):
        settings = {kind: rope[kind] for kind in _LAYER_KINDS if isinstance(rope.get(kind), Mapping)}
        bases = {_LAYER_KINDS[kind]: each["rope_theta"] for kind, each in settings.items() if "rope_theta" in each}
        return {**_lifted(settings.get("full_attention", {})), **bases}
    beside = {name: rope[name] for name in _BESIDE if rope.get(name) is not None}
    scaling = {name: value for name, value in rope.items() if name not in _BESIDE}
    if scaling.get("rope_type", "default") == "default":
        return beside
    return {**beside, "rope_scaling": {"type": scaling["rope_type"], **scaling}}
