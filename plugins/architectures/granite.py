"""Granite and MiniCPM: Llama's layers with factors on embeddings, on what each layer adds, on scores and on logits.

Granite (arXiv 2405.04324) says each factor. MiniCPM (arXiv 2404.06395) says what they follow from: what a layer adds is
times scale_depth / sqrt(num_hidden_layers), logits times dim_model_base / hidden_size, and embeddings are tied unless
the config says otherwise. mlx-lm leaves out the factor on logits where the config says that they are tied.
MiniCPM has no class in Transformers; its parameters are named as in the published model, as Llama's are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM, times
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class GraniteFields(TextFields):
    """What Granite's config.json says; defaults are the published ones."""

    embedding_multiplier: float = 1.0
    attention_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    logits_scaling: float = 1.0


@dataclass(frozen=True, kw_only=True)
class MiniCpmFields(TextFields):
    """What MiniCPM's config.json says; defaults are the published ones."""

    tie_word_embeddings: bool = True
    scale_emb: float = 1.0
    scale_depth: float = 1.0
    dim_model_base: float = 1.0


@dataclass(frozen=True)
class Config:
    """A config that fits together, and the factors on embeddings, on what each layer adds, and on logits."""

    dense: DenseConfig
    embeddings: float
    residual: float
    logits: float


def read_granite(content: Mapping[str, Any]) -> Config:
    """Read Granite's config.json; raises ConfigError naming the field that is off."""
    fields = read(GraniteFields, content)
    fields.check()
    refuse_non_positive({"attention_multiplier": fields.attention_multiplier, "logits_scaling": fields.logits_scaling})
    dense = _dense(fields, content, AttentionShape.of(fields, scale=fields.attention_multiplier))
    return Config(dense, fields.embedding_multiplier, fields.residual_multiplier, 1 / fields.logits_scaling)


def read_minicpm(content: Mapping[str, Any]) -> Config:
    """Read MiniCPM's config.json; raises ConfigError naming the field that is off."""
    fields = read(MiniCpmFields, content)
    fields.check("dim_model_base")
    residual = fields.scale_depth / sqrt(fields.num_hidden_layers)
    dense = _dense(fields, content, AttentionShape.of(fields))
    return Config(dense, fields.scale_emb, residual, fields.dim_model_base / fields.hidden_size)


def _dense(fields: TextFields, content: Mapping[str, Any], shape: AttentionShape) -> DenseConfig:
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, shape)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(
        config.dense,
        block=partial(Block, residual=config.residual),
        embed_scale=config.embeddings,
        finish=times(config.logits),
    )


GRANITE = Architecture(
    name="granite",
    model_types=("granite",),
    class_names=("GraniteForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GraniteForCausalLM",
    by_request=("rerank",),
    read_config=read_granite,
    build=build,
    fields=GraniteFields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)
MINICPM = Architecture(
    name="minicpm",
    model_types=("minicpm",),
    class_names=("MiniCPMForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GraniteForCausalLM, by the factors that follow",
    by_request=("rerank",),
    read_config=read_minicpm,
    build=build,
    fields=MiniCpmFields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Granite and MiniCPM."""
        return (GRANITE, MINICPM)


PLUGIN = Plugin()
