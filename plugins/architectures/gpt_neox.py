"""GPT-NeoX and Pythia (arXiv 2204.06745, 2304.01373): attention and a feed-forward layer side by side, a norm each.

One matrix makes queries, keys and values, head by head: the rows of a head are its query's, its key's, its value's. A
quarter of a head's dims turns unless the config says otherwise. Without `use_parallel_residual` the feed-forward layer
follows attention.
Parameters are named as Transformers 5 names those of GPTNeoXForCausalLM.
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
from weightloom.plugins.configs.names import also_named
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl

PARTS = Parts(mixer="attention")
MLP_NAMES = ("dense_h_to_4h", "dense_4h_to_h")
PUBLISHED_NAMES = {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"}


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-5
    attention_bias: bool = True
    use_parallel_residual: bool = True


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
    ropes = read_rope(content, fields.head_size, fields.max_position_embeddings, default_part=0.25)
    shape = AttentionShape.of(fields)
    return Config(fields, shape, activation(fields.hidden_act), ropes[FULL])


class NeoXAttention(Attention):
    """Attention of as many heads of keys as of queries; parameters `query_key_value` and `dense`."""

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the two matrices."""
        width = shape.heads * shape.head_dim
        self.query_key_value = nn.Linear(shape.hidden_size, 3 * width, bias=shape.bias)
        self.dense = nn.Linear(width, shape.hidden_size, bias=shape.out_bias)

    def project(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and values, (B, L, heads, head_dim) each."""
        by_head = self.query_key_value(x).reshape(*x.shape[:2], -1, 3 * self._shape.head_dim)
        queries, keys, values = mx.split(by_head, 3, axis=-1)
        return queries, keys, values

    def out(self, mixed: mx.array, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.dense(mixed)
        return made


class ParallelNeoXBlock(MixerBlock):
    """The usual block, but that the feed-forward layer gets what came, under its own norm."""

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what the two make of x."""
        return x + mixed + self.fed(self["post_attention_layernorm"](x))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = layer_norm(fields.layer_norm_eps)
    block = ParallelNeoXBlock if fields.use_parallel_residual else MixerBlock
    blocks = [
        block(
            NeoXAttention(config.attention, rope),
            PlainMlp(fields.hidden_size, fields.intermediate_size, config.act, bias=True, names=MLP_NAMES),
            fields.hidden_size,
            norm,
            PARTS,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    names = Names(embedding="embed_in", norm="final_layer_norm", decoder="gpt_neox")
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, names=names)
    return CausalLM(decoder, fields.tie_word_embeddings)


GPT_NEOX = Architecture(
    name="gpt_neox",
    model_types=("gpt_neox",),
    class_names=("GPTNeoXForCausalLM",),
    base_model_prefix="gpt_neox",
    task="generate",
    verified="Transformers 5.24 GPTNeoXForCausalLM",
    by_request=("rerank",),
    read_config=also_named(PUBLISHED_NAMES, read_config),
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        r"^(gpt_neox\.embed_in|lm_head)\.": "vocab",
        r"attention\.query_key_value\.": "column",
        r"attention\.dense\.(weight|scales|biases)$": "row",
        r"mlp\.dense_h_to_4h\.": "column",
        r"mlp\.dense_4h_to_h\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers GPT-NeoX."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer GPT-NeoX."""
        return (GPT_NEOX,)


PLUGIN = Plugin()
