"""Gemma (arXiv 2403.08295): norms that scale by one plus their weight, scaled embeddings, heads of their own width.

Its first configs say `gelu` where the tanh approximation is meant, which the published code computes; mlx-lm 0.32 takes
them by their word. Parameters are named as Transformers 5 names those of GemmaForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_bidirectional
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True
    use_bidirectional_attention: bool | None = None


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    refuse_bidirectional(fields.use_bidirectional_attention)
    meant = replace(fields, hidden_act="gelu_pytorch_tanh") if fields.hidden_act == "gelu" else fields
    return DenseConfig.of(meant, content, (FULL,) * fields.num_hidden_layers)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, norm=zero_centred_norm, embed_scale=sqrt(config.fields.hidden_size))


GEMMA = Architecture(
    name="gemma",
    model_types=("gemma",),
    class_names=("GemmaForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GemmaForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers Gemma."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Gemma."""
        return (GEMMA,)


PLUGIN = Plugin()
