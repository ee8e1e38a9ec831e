"""GLM and GLM-4: half of each head turns, neighbours against each other; gate and up in one matrix.

GLM-4-0414 (`glm4`) has norms before and after attention and feed-forward layer; GLM-4 as first published for
Transformers (`glm`) has those before alone. The matrices of attention have biases but for the last.
Parameters are named as Transformers 5 names those of Glm4ForCausalLM and GlmForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.blocks import SandwichBlock
from weightloom.plugins.layers.cuts import FUSED, HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.mlp import FusedMlp
from weightloom.plugins.layers.rope import interleaved
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    rms_norm_eps: float = 1.5625e-07
    max_position_embeddings: int = 131072
    attention_bias: bool = True


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    shape = AttentionShape.of(fields, out_bias=False)
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, shape, default_part=0.5)


class Glm4Block(SandwichBlock):
    """Attention and feed-forward layer, each between two norms."""

    norms = (
        "input_layernorm",
        "post_self_attn_layernorm",
        "post_attention_layernorm",
        "post_mlp_layernorm",
    )


def build_glm(config: DenseConfig) -> CausalLM:
    """Make the module of a `glm`; its parameters are not computed."""
    return build_dense(config, mlp=FusedMlp, rope=interleaved)


def build_glm4(config: DenseConfig) -> CausalLM:
    """Make the module of a `glm4`; its parameters are not computed."""
    return build_dense(config, mlp=FusedMlp, rope=interleaved, block=Glm4Block)


SHARDING = {**VOCABULARY, **HEADS, **FUSED}

GLM = Architecture(
    name="glm",
    model_types=("glm",),
    class_names=("GlmForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GlmForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build_glm,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)
GLM4 = Architecture(
    name="glm4",
    model_types=("glm4",),
    class_names=("Glm4ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Glm4ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build_glm4,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer GLM and GLM-4."""
        return (GLM, GLM4)


PLUGIN = Plugin()
