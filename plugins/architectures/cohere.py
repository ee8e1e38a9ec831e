"""Command R, and Command R7B or A (model types cohere and cohere2): attention and feed-forward side by side.

Both follow one layer norm without a bias; rope turns each even dim against its neighbour; scores are multiplied by
`logit_scale`. A `cohere` may norm each head of queries and keys with weights of its own. In `cohere2` three layers of
four slide; only those turn by position, and the others tell tokens apart by what comes before alone (arXiv 2501.18795).

Parameters are named as Transformers 5 names those of CohereForCausalLM and Cohere2ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, layer_types_of, refuse_non_positive, window_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import ParallelBlock
from weightloom.plugins.layers.cuts import GATED, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, times
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import PerHeadLayerNorm, layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are those of a published `cohere`."""

    vocab_size: int = 256000
    hidden_size: int = 8192
    intermediate_size: int = 22528
    num_hidden_layers: int = 40
    num_attention_heads: int = 64
    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    tie_word_embeddings: bool = True
    logit_scale: float = 0.0625
    use_qk_norm: bool = False


@dataclass(frozen=True, kw_only=True)
class Fields2(Fields):
    """The same; defaults are those of a published `cohere2`."""

    sliding_window: int | None = 4096


@dataclass(frozen=True)
class Config:
    """A config that fits together: `ropes` and `windows` have an entry a layer; without a rope none turns."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    ropes: tuple[RopeConfig | None, ...]
    windows: tuple[int | None, ...]


def read_cohere(content: Mapping[str, Any]) -> Config:
    """Read config.json of a `cohere`; raises ConfigError naming the field that is off."""
    fields = _checked(read(Fields, content))
    rope = read_rope(content, fields.head_size, fields.max_position_embeddings, 500000.0)[FULL]
    count = fields.num_hidden_layers
    return _config(fields, (rope,) * count, (None,) * count)


def read_cohere2(content: Mapping[str, Any]) -> Config:
    """Read config.json of a `cohere2`; raises ConfigError naming the field that is off."""
    fields = _checked(read(Fields2, content))
    every = fields.sliding_window_pattern or (4 if fields.layer_types is None else None)
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, FULL, every)
    rope = read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL]
    ropes = tuple(None if each == FULL else rope for each in types)
    return _config(fields, ropes, tuple(window_of(each, fields.sliding_window) for each in types))


def _checked(fields: Fields) -> Fields:
    fields.check("layer_norm_eps")
    refuse_non_positive({"logit_scale": fields.logit_scale})
    return fields


def _config(fields: Fields, ropes: tuple[RopeConfig | None, ...], windows: tuple[int | None, ...]) -> Config:
    return Config(fields, AttentionShape.of(fields), activation(fields.hidden_act), ropes, windows)


class NormedAttention(Attention):
    """Attention whose heads have norms with weights of their own, (heads, head_dim)."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, eps: float) -> None:
        super().__init__(shape, rope)
        self.q_norm = PerHeadLayerNorm(shape.heads, shape.head_dim, eps)
        self.k_norm = PerHeadLayerNorm(shape.kv_heads, shape.head_dim, eps)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, shape = config.fields, config.attention
    norm = layer_norm(fields.layer_norm_eps, bias=False)
    ropes = {rope: Rope(rope, shape.head_dim, interleaved=True) for rope in config.ropes if rope is not None}
    blocks = [
        ParallelBlock(
            _attention(config, None if rope is None else ropes[rope]),
            GatedMlp(fields.hidden_size, fields.intermediate_size, config.act),
            fields.hidden_size,
            norm,
            window,
        )
        for rope, window in zip(config.ropes, config.windows, strict=True)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings, times(fields.logit_scale))


def _attention(config: Config, rope: Rope | None) -> Attention:
    if not config.fields.use_qk_norm:
        return Attention(config.attention, rope)
    return NormedAttention(config.attention, rope, config.fields.layer_norm_eps)


SHARDING = {
    **VOCABULARY,
    r"self_attn\.([qkv]_proj|[qk]_norm)\.": "column",
    r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
    **GATED,
}

COHERE = Architecture(
    name="cohere",
    model_types=("cohere",),
    class_names=("CohereForCausalLM",),
    task="generate",
    verified="Transformers 5.24 CohereForCausalLM",
    by_request=("rerank",),
    read_config=read_cohere,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)
COHERE2 = Architecture(
    name="cohere2",
    model_types=("cohere2",),
    class_names=("Cohere2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Cohere2ForCausalLM",
    by_request=("rerank",),
    read_config=read_cohere2,
    build=build,
    fields=Fields2,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer `cohere` and `cohere2`."""
        return (COHERE, COHERE2)


PLUGIN = Plugin()
