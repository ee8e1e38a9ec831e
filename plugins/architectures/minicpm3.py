"""MiniCPM 3: latent attention (arXiv 2405.04434), halves turned against each other, and MiniCPM's factors.

By arXiv 2404.06395 embeddings are times `scale_emb`, what a layer adds times scale_depth / sqrt(num_hidden_layers),
and logits times dim_model_base / hidden_size; a null stands for no factor. mlx-lm leaves out the last one where
embeddings are tied.
Parameters are named as Transformers 5 names those of MiniCPM3ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.latent_fields import LatentFields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import GATED, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, times
from weightloom.plugins.layers.latent_attention import HEAD_CUTS, LatentAttention, LatentShape
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(LatentFields):
    """What config.json says; defaults are the published ones. Without `v_head_dim` values share the hidden size."""

    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 32768
    tie_word_embeddings: bool = True
    kv_lora_rank: int = 256
    q_lora_rank: int | None = 768
    qk_nope_head_dim: int = 64
    qk_rope_head_dim: int = 32
    v_head_dim: int = 0
    scale_emb: float = 12.0
    scale_depth: float | None = 1.4
    dim_model_base: float | None = 256.0


@dataclass(frozen=True)
class Config:
    """A config that fits together, and the factors on what each layer adds and on logits."""

    fields: Fields
    attention: LatentShape
    act: Activation
    rope: RopeConfig
    residual: float
    logits: float


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    said = content.get("v_head_dim") is not None
    fields = read(Fields, content if said else {name: each for name, each in content.items() if name != "v_head_dim"})
    fields.check()
    fields = fields if said else replace(fields, v_head_dim=fields.hidden_size // fields.num_attention_heads)
    fields.check_parts()
    base = fields.hidden_size if fields.dim_model_base is None else fields.dim_model_base
    refuse_non_positive({"dim_model_base": base})
    rope = read_rope(content, fields.qk_rope_head_dim, fields.max_position_embeddings)[FULL]
    return Config(
        fields,
        LatentShape.of(fields, rope),
        activation(fields.hidden_act),
        rope,
        1.0 if fields.scale_depth is None else fields.scale_depth / sqrt(fields.num_hidden_layers),
        base / fields.hidden_size,
    )


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, rms_norm(config.fields.rms_norm_eps)
    rope = Rope(config.rope, fields.qk_rope_head_dim)
    blocks = [
        Block(
            LatentAttention(config.attention, rope),
            GatedMlp(fields.hidden_size, fields.intermediate_size, config.act, fields.mlp_bias),
            fields.hidden_size,
            norm,
            residual=config.residual,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, fields.scale_emb)
    return CausalLM(decoder, fields.tie_word_embeddings, times(config.logits))


MINICPM3 = Architecture(
    name="minicpm3",
    model_types=("minicpm3",),
    class_names=("MiniCPM3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 MiniCPM3ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEAD_CUTS, **GATED},
)


class Plugin:
    """Offers MiniCPM 3."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer MiniCPM 3."""
        return (MINICPM3,)


PLUGIN = Plugin()
