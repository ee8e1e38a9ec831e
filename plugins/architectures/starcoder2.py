"""StarCoder2 (arXiv 2402.19173): grouped-query attention and a plain feed-forward layer, layer norms, biases.

All layers slide where there is a window.
Parameters are named as Transformers 5 names those of Starcoder2ForCausalLM. mlx-lm passes over windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, window_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 2
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    norm_epsilon: float = 1e-5
    use_bias: bool = True
    tie_word_embeddings: bool = True


@dataclass(frozen=True)
class Config:
    """A config that fits together; `window` is that of every layer."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig
    window: int | None


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("norm_epsilon")
    shape = AttentionShape.of(fields, bias=fields.use_bias, out_bias=fields.use_bias)
    rope = read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL]
    window = window_of(FULL if fields.sliding_window is None else SLIDING, fields.sliding_window)
    return Config(fields, shape, activation(fields.hidden_act), rope, window)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = layer_norm(fields.norm_epsilon)
    sizes = fields.hidden_size, fields.intermediate_size
    blocks = [
        Block(
            Attention(config.attention, rope),
            PlainMlp(*sizes, config.act, fields.use_bias, names=("c_fc", "c_proj")),
            fields.hidden_size,
            norm,
            config.window,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


STARCODER2 = Architecture(
    name="starcoder2",
    model_types=("starcoder2",),
    class_names=("Starcoder2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Starcoder2ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        r"^(model\.embed_tokens|lm_head)\.": "vocab",
        r"self_attn\.[qkv]_proj\.": "column",
        r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
        r"mlp\.c_fc\.": "column",
        r"mlp\.c_proj\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers StarCoder2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer StarCoder2."""
        return (STARCODER2,)


PLUGIN = Plugin()
