"""Heads of layers that see all, where they are others than those of layers that slide (Gemma 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.configs.checks import FULL, head_dim_of, kv_heads_of
from weightloom.plugins.configs.text_fields import TextFields

_Said = tuple[str, int | None]


@dataclass(frozen=True)
class GlobalHeads:
    """What a config says of them: published fields, `kv_heads` None for as many as other layers have, or a list.

    The list, `per_layer_config` as Transformers 5 saves it, decides where it is there: by a layer's number, what it has
    of its own.
    """

    head_dim: int
    kv_heads: int | None
    per_layer_config: Mapping[str, Any] | None

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def heads_of_layer(fields: TextFields, own: GlobalHeads, layer: int, layer_type: str) -> tuple[int, int]:
    """Give the size of a layer's heads, and how many of keys and values it has; raises ConfigError naming the field."""
    (dim_field, dim), (heads_field, kv_heads) = _said(fields, own, layer, layer_type)
    size = head_dim_of(dim, fields.hidden_size, fields.num_attention_heads, dim_field)
    return size, kv_heads_of(kv_heads, fields.num_attention_heads, heads_field)


def _said(fields: TextFields, own: GlobalHeads, layer: int, layer_type: str) -> tuple[_Said, _Said]:
    usual = ("head_dim", fields.head_dim), ("num_key_value_heads", fields.num_key_value_heads)
    if own.per_layer_config is not None:
        return _listed(own.per_layer_config, layer, usual)
    if layer_type != FULL:
        return usual
    kv_heads = usual[1] if own.kv_heads is None else ("num_global_key_value_heads", own.kv_heads)
    return ("global_head_dim", own.head_dim), kv_heads


def _listed(listed: Mapping[str, Any], layer: int, usual: tuple[_Said, _Said]) -> tuple[_Said, _Said]:
    said = listed.get(str(layer), {})
    if not isinstance(said, Mapping) or not all(type(said.get(name, 1)) is int for name, _ in usual):
        expected = f"whole numbers, {' and '.join(name for name, _ in usual)}"
        raise ConfigError(f"layer {layer} has {said!r}", expected=expected, field="per_layer_config")
    dim, kv_heads = (
        (f"per_layer_config.{layer}.{name}", said[name]) if name in said else (name, size) for name, size in usual
    )
    return dim, kv_heads
