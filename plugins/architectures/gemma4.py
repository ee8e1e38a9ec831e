"""The text model of Gemma 4: heads of two sizes, inputs a layer, shared keys and values, experts beside a dense layer.

Layers that see all have heads of their own size, `global_head_dim`, of which a share turns (rope type `proportional`);
with `attention_k_eq_v` their values are their keys before norm and rope. The last layer sees all, whatever is said of
it. The last `num_kv_shared_layers` attend to keys and values of earlier layers, and may be twice as wide. A config says
whether layers hear of each token what an embedding for them alone says, and whether experts, chosen by a router on the
state itself, stand beside the dense layer. Scores are not scaled, for queries and keys are normed.

Transformers 5 saves what layers that see all have of their own as `per_layer_config`; published configs name it by
`global_head_dim` and `num_global_key_value_heads`. Its 5.24 fails on borrowers that hear nothing. Parameters are
named as it names those of Gemma4ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    SLIDING,
    layer_types_of,
    refuse_bidirectional,
    refuse_lonely_borrowers,
    refuse_non_positive,
    refuse_non_positive_where_given,
    window_of,
)
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.heads_by_layer import GlobalHeads, heads_of_layer
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape, ValueNormAttention
from weightloom.plugins.layers.blocks import SandwichBlock
from weightloom.plugins.layers.cache import Cache, make_cache
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM, Decoder, capped
from weightloom.plugins.layers.experts import Experts, weighted_sum
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import UnweightedNorm, rms_norm
from weightloom.plugins.layers.per_layer import Heard, Hears, PerLayerDecoder
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layers.sharing import BorrowersCache, BorrowingAttention, SharingDecoder
from weightloom.plugins.specs import hookimpl

THETAS = {FULL: 1000000.0, SLIDING: 10000.0}
PUBLISHED_ROPE: Mapping[str, Any] = {
    SLIDING: {"rope_type": "default"},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25},
}
"""The rotary settings of a config that has none."""


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 262144
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 30
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    hidden_activation: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 131072
    tie_word_embeddings: bool = True
    sliding_window: int | None = 512
    final_logit_softcapping: float | None = None
    global_head_dim: int = 512
    num_global_key_value_heads: int | None = None
    per_layer_config: Mapping[str, Any] | None = None
    vocab_size_per_layer_input: int = 262144
    hidden_size_per_layer_input: int = 256
    attention_k_eq_v: bool = False
    num_kv_shared_layers: int = 0
    enable_moe_block: bool = False
    use_double_wide_mlp: bool = False
    num_experts: int | None = None
    top_k_experts: int | None = None
    moe_intermediate_size: int | None = None
    use_bidirectional_attention: bool | str | None = None


@dataclass(frozen=True)
class LayerConfig:
    """One layer: its heads, how they turn, what it sees, how wide it is, and whether it borrows keys and values."""

    attention: AttentionShape
    rope: RopeConfig
    window: int | None
    width: int
    borrows: bool


@dataclass(frozen=True)
class ExpertsConfig:
    """The experts of each layer, how many a token goes to, and how wide they are."""

    count: int
    chosen: int
    width: int


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    act: Activation
    layers: tuple[LayerConfig, ...]
    experts: ExpertsConfig | None


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("vocab_size_per_layer_input", "global_head_dim")
    width = fields.hidden_size_per_layer_input
    refuse_unless(width >= 0, "hidden_size_per_layer_input", width, "0 or more")
    # What is seen both ways are the tokens of an image: a prompt of text has none.
    both_ways = fields.use_bidirectional_attention
    refuse_bidirectional(None if both_ways == "vision" else both_ways)
    refuse_non_positive_where_given({"final_logit_softcapping": fields.final_logit_softcapping})
    every = fields.sliding_window_pattern or (6 if fields.layer_types is None else None)
    types = (*layer_types_of(fields.layer_types, fields.num_hidden_layers, FULL, every)[:-1], FULL)
    refuse_lonely_borrowers(types, fields.num_kv_shared_layers)
    rope = content if content.get("rope_parameters") is not None else {**content, "rope_parameters": PUBLISHED_ROPE}
    layers = tuple(_layer(fields, rope, number, each) for number, each in enumerate(types))
    return Config(fields, activation(fields.hidden_activation, "hidden_activation"), layers, _experts(fields))


def _layer(fields: Fields, content: Mapping[str, Any], number: int, layer_type: str) -> LayerConfig:
    kv_heads = fields.num_global_key_value_heads if fields.attention_k_eq_v else None
    own = GlobalHeads(fields.global_head_dim, kv_heads, fields.per_layer_config)
    head_dim, kv_heads = heads_of_layer(fields, own, number, layer_type)
    trained = fields.max_position_embeddings
    borrows = number >= fields.num_hidden_layers - fields.num_kv_shared_layers
    return LayerConfig(
        replace(AttentionShape.of(fields, scale=1.0), kv_heads=kv_heads, head_dim=head_dim),
        read_rope(content, head_dim, trained, THETAS[layer_type], (layer_type,))[layer_type],
        window_of(layer_type, fields.sliding_window),
        fields.intermediate_size * (2 if borrows and fields.use_double_wide_mlp else 1),
        borrows,
    )


def _experts(fields: Fields) -> ExpertsConfig | None:
    if not fields.enable_moe_block:
        return None
    names = ("num_experts", "top_k_experts", "moe_intermediate_size")
    count, chosen, width = (getattr(fields, name) or 0 for name in names)
    refuse_non_positive(dict(zip(names, (count, chosen, width), strict=True)))
    refuse_unless(chosen <= count, "top_k_experts", chosen, f"num_experts, {count}, at most")
    return ExpertsConfig(count, chosen, width)


class KeysAsValues(ValueNormAttention):
    """Attention whose values are its keys, normed otherwise and not turned; there is no `v_proj`."""

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the matrices of queries, of keys, and of what comes after."""
        super().add_projections(shape)
        del self.v_proj

    def projected(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and keys."""
        keys = self.k_proj(x)
        return self.q_proj(x), keys, keys


class Router(nn.Module):
    """Chooses each token's experts by its normed state times `scale`, and weighs them by `per_expert_scale` too."""

    def __init__(self, hidden_size: int, experts: ExpertsConfig, eps: float) -> None:
        super().__init__()
        self._chosen = experts.chosen
        self._norm = UnweightedNorm(eps)
        self.proj = nn.Linear(hidden_size, experts.count, bias=False)
        self.scale = mx.ones((hidden_size,))
        self.per_expert_scale = mx.ones((experts.count,))

    def __call__(self, tokens: mx.array) -> tuple[mx.array, mx.array]:
        """Tokens (N, hidden_size) -> the experts of each, (N, k) int, and their weights, (N, k) float32."""
        scores = self.proj(self._norm(tokens) * self.scale * tokens.shape[-1] ** -0.5)
        chosen, weights = softmax_over_chosen(scores, self._chosen)
        return chosen, weights * self.per_expert_scale[chosen]


class Gemma4Block(SandwichBlock, Hears):
    """Attention and a feed-forward layer between norms, then what is heard, if anything, and a factor on all."""

    def __init__(self, config: Config, layer: LayerConfig, attention: Attention) -> None:
        fields = config.fields
        size, norm, width = fields.hidden_size, rms_norm(fields.rms_norm_eps), fields.hidden_size_per_layer_input
        super().__init__(attention, GatedMlp(size, layer.width, config.act), size, norm, layer.window)
        self._borrows = layer.borrows
        self.layer_scalar = mx.ones((1,))
        if width:
            self.add_hearing(size, width, config.act, norm)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache, heard: mx.array | None = None) -> mx.array:
        """(B, L, hidden_size) and what is heard of each token (B, L, width) -> (B, L, hidden_size)."""
        x = super().__call__(x, mask, cache)
        return (x if heard is None else x + self.from_heard(x, heard)) * self.layer_scalar

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return BorrowersCache() if self._borrows else make_cache(self.window)


class ExpertsBlock(Gemma4Block):
    """The same with experts beside the feed-forward layer, each with norms of its own."""

    def __init__(self, config: Config, layer: LayerConfig, attention: Attention, experts: ExpertsConfig) -> None:
        super().__init__(config, layer, attention)
        size, eps = config.fields.hidden_size, config.fields.rms_norm_eps
        norm = rms_norm(eps)
        self.router = Router(size, experts, eps)
        self.experts = Experts(experts.count, size, experts.width, config.act)
        self.post_feedforward_layernorm_1 = norm(size)
        self.post_feedforward_layernorm_2 = norm(size)
        self.pre_feedforward_layernorm_2 = norm(size)

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the sum of what the feed-forward layer and the experts make, each normed."""
        dense: mx.array = self.post_feedforward_layernorm_1(super().fed(x))
        tokens = x.reshape(-1, x.shape[-1])
        made = weighted_sum(self.experts, self.pre_feedforward_layernorm_2(tokens), *self.router(tokens))
        chosen: mx.array = self.post_feedforward_layernorm_2(made.astype(x.dtype)).reshape(x.shape)
        return dense + chosen


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    ropes = {layer.rope: Rope(layer.rope, layer.attention.head_dim) for layer in config.layers}
    blocks = [_block(config, layer, _attention(config, layer, ropes[layer.rope])) for layer in config.layers]
    return CausalLM(_decoder(fields, blocks), fields.tie_word_embeddings, capped(fields.final_logit_softcapping))


def _block(config: Config, layer: LayerConfig, attention: Attention) -> Gemma4Block:
    if config.experts is None:
        return Gemma4Block(config, layer, attention)
    return ExpertsBlock(config, layer, attention, config.experts)


def _attention(config: Config, layer: LayerConfig, rope: Rope) -> Attention:
    eps = config.fields.rms_norm_eps
    if layer.borrows:
        return BorrowingAttention(layer.attention, rope, rms_norm(eps))
    as_values = config.fields.attention_k_eq_v and layer.window is None
    return (KeysAsValues if as_values else ValueNormAttention)(layer.attention, rope, eps)


def _decoder(fields: Fields, blocks: list[Gemma4Block]) -> Decoder:
    size, norm, borrowers = fields.hidden_size, rms_norm(fields.rms_norm_eps), fields.num_kv_shared_layers
    if fields.hidden_size_per_layer_input:
        heard = Heard(fields.vocab_size_per_layer_input, fields.hidden_size_per_layer_input)
        return PerLayerDecoder(fields.vocab_size, size, norm, blocks, borrowers, sqrt(size), heard)
    if borrowers:
        return SharingDecoder(fields.vocab_size, size, norm(size), blocks, borrowers, sqrt(size))
    return Decoder(fields.vocab_size, size, norm(size), blocks, sqrt(size))


GEMMA4 = Architecture(
    name="gemma4_text",
    model_types=("gemma4_text",),
    class_names=("Gemma4ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Gemma4ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers the text model of Gemma 4."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the text model of Gemma 4."""
        return (GEMMA4,)


PLUGIN = Plugin()
