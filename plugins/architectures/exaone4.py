"""EXAONE 4 (arXiv 2507.11407): norms behind attention and feed-forward layer, and on the heads of q and k.

Where some layers have windows, those turn queries and keys by position, and the others know positions only by what
comes before. `sliding_window_pattern` n makes each n-th layer full; a text such as LLLG repeats and says L for a window
and G for none, and the last layer is full whatever it says. `layer_types`, where there, decides alone.
Parameters are named as Transformers 5 names those of Exaone4ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.blocks import PostNormBlock
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 32
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = 4096
    sliding_window_pattern: int | None = 4


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    pattern = content.get("sliding_window_pattern")
    letters = pattern if isinstance(pattern, str) else None
    fields = read(Fields, content if letters is None else {**content, "sliding_window_pattern": None})
    fields.check()
    shape = AttentionShape.of(fields, bias=False, out_bias=False, norm_eps=fields.rms_norm_eps)
    return DenseConfig.of(fields, content, _layer_types(fields, letters), shape)


def _layer_types(fields: Fields, letters: str | None) -> tuple[str, ...]:
    count = fields.num_hidden_layers
    if fields.layer_types is not None or fields.sliding_window is None:
        return layer_types_of(fields.layer_types, count, FULL)
    if letters is None:
        return layer_types_of(None, count, FULL, fields.sliding_window_pattern)
    refuse_unless(bool(letters) and set(letters) <= {"L", "G"}, "sliding_window_pattern", letters, "letters L and G")
    return (*(SLIDING if letters[layer % len(letters)] == "L" else FULL for layer in range(count - 1)), FULL)


def turning(config: DenseConfig) -> tuple[bool, ...]:
    """Say of each layer whether its queries and keys turn."""
    hybrid = config.fields.sliding_window is not None
    return tuple(each == SLIDING or not hybrid for each in config.layer_types)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, turns=turning(config), block=PostNormBlock)


EXAONE4 = Architecture(
    name="exaone4",
    model_types=("exaone4",),
    class_names=("Exaone4ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Exaone4ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers EXAONE 4."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer EXAONE 4."""
        return (EXAONE4,)


PLUGIN = Plugin()
