"""Phi, to Phi-2 (arXiv 2306.11644, 2309.05463): attention and a plain feed-forward layer side by side after one norm.

Norms are layer norms, all matrices have biases, the head too, and half of a head's dims turn unless the config says
otherwise. Where the embeddings score the tokens, the head has its bias alone.
Parameters are named as Transformers 5 names those of PhiForCausalLM. mlx-lm passes over `qk_layernorm`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import ParallelBlock
from weightloom.plugins.layers.cuts import VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import Norm, layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    hidden_act: str = "gelu_new"
    layer_norm_eps: float = 1e-5
    qk_layernorm: bool = False


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("layer_norm_eps")
    ropes = read_rope(content, fields.head_size, fields.max_position_embeddings, default_part=0.5)
    shape = AttentionShape.of(fields, bias=True, out_bias=True)
    return Config(fields, shape, activation(fields.hidden_act), ropes[FULL])


class PhiAttention(Attention):
    """Attention whose last matrix is `dense`, with layer norms on heads, `q_layernorm` and `k_layernorm`, if any."""

    def __init__(self, shape: AttentionShape, rope: Rope, head_norm: Norm | None) -> None:
        super().__init__(shape, rope)
        if head_norm is not None:
            self.q_layernorm = head_norm(shape.head_dim)
            self.k_layernorm = head_norm(shape.head_dim)

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the matrices before and after attention proper."""
        super().add_projections(shape)
        self.dense = self.pop("o_proj")

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm queries and keys, (B, L, heads, head_dim) each, where there are norms."""
        if "q_layernorm" not in self:
            return queries, keys, values
        return self.q_layernorm(queries), self.k_layernorm(keys), values

    def out(self, mixed: mx.array, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.dense(mixed)
        return made


class HeadBias(nn.Module):
    """What is left of a head whose matrix is the embeddings': `bias` (vocab,)."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.bias = mx.zeros((vocab_size,))


class TiedCausalLM(CausalLM):
    """A decoder whose embeddings score the tokens, and a bias for each of these."""

    def __init__(self, decoder: Decoder, vocab_size: int) -> None:
        super().__init__(decoder, tied=True)
        self.lm_head = HeadBias(vocab_size)

    def head(self, hidden: mx.array) -> mx.array:
        """Hidden states (B, L, hidden_size) -> logits (B, L, vocab)."""
        scores: mx.array = self.decoder.embedding.as_linear(hidden) + self.lm_head.bias
        return scores


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = layer_norm(fields.layer_norm_eps)
    head_norm = norm if fields.qk_layernorm else None
    blocks = [
        ParallelBlock(
            PhiAttention(config.attention, rope, head_norm),
            PlainMlp(fields.hidden_size, fields.intermediate_size, config.act, bias=True, names=("fc1", "fc2")),
            fields.hidden_size,
            norm,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    names = Names(norm="final_layernorm")
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, names=names)
    if fields.tie_word_embeddings:
        return TiedCausalLM(decoder, fields.vocab_size)
    return CausalLM(decoder, tied=False, head_bias=True)


PHI = Architecture(
    name="phi",
    model_types=("phi",),
    class_names=("PhiForCausalLM",),
    task="generate",
    verified="Transformers 5.24 PhiForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        **VOCABULARY,
        r"self_attn\.[qkv]_proj\.": "column",
        r"self_attn\.dense\.(weight|scales|biases)$": "row",
        r"mlp\.fc1\.": "column",
        r"mlp\.fc2\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers Phi."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Phi."""
        return (PHI,)


PLUGIN = Plugin()
