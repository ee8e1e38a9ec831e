"""OLMo 2 (arXiv 2501.00656) and OLMo 3: norms behind attention and feed-forward layer, and over all of q and of k.

OLMo 3 has windows in all layers but each fourth, and scales the rope of those fourths alone: in a config that has its
`rope_scaling` at the top, the layers with windows turn by the plain frequencies of the same base.
Parameters are named as Transformers 5 names those of Olmo2ForCausalLM and Olmo3ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, layer_types_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import WideNormAttention
from weightloom.plugins.layers.blocks import PostNormBlock
from weightloom.plugins.layers.cuts import GATED, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.specs import hookimpl

OLMO3_THETA = 500000.0


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    rms_norm_eps: float = 1e-5


@dataclass(frozen=True, kw_only=True)
class Olmo3Fields(Fields):
    """The same of an OLMo 3."""

    sliding_window: int | None = 4096


def read_olmo2(content: Mapping[str, Any]) -> DenseConfig:
    """Read an OLMo 2's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers)


def read_olmo3(content: Mapping[str, Any]) -> DenseConfig:
    """Read an OLMo 3's config.json; raises ConfigError naming the field that is off."""
    fields = read(Olmo3Fields, content)
    fields.check()
    every = 4 if fields.layer_types is None else None
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, FULL, every)
    return DenseConfig.of(fields, _with_a_base_of_windows(content), types, default_theta=OLMO3_THETA)


def _with_a_base_of_windows(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a config whose windows have the base of all, unscaled, where settings are not by layer type."""
    if content.get("rope_scaling") is None or content.get("rope_parameters") is not None:
        return content
    return {"rope_local_base_freq": content.get("rope_theta", OLMO3_THETA), **content}


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    attention = partial(WideNormAttention, norm_eps=config.fields.rms_norm_eps)
    return build_dense(config, attention, block=PostNormBlock)


OLMO2 = Architecture(
    name="olmo2",
    model_types=("olmo2",),
    class_names=("Olmo2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Olmo2ForCausalLM",
    by_request=("rerank",),
    read_config=read_olmo2,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **GATED},
)
OLMO3 = Architecture(
    name="olmo3",
    model_types=("olmo3",),
    class_names=("Olmo3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Olmo3ForCausalLM",
    by_request=("rerank",),
    read_config=read_olmo3,
    build=build,
    fields=Olmo3Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **GATED},
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer OLMo 2 and OLMo 3."""
        return (OLMO2, OLMO3)


PLUGIN = Plugin()
