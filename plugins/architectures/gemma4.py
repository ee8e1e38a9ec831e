"""The text models of Gemma 4 and Gemma 4 Unified: heads of two sizes, inputs a layer, shared keys and values, experts.

Layers that see all have heads of their own size, `global_head_dim`, of which a share turns (rope type `proportional`);
with `attention_k_eq_v` their values are their keys before norm and rope. The last layer sees all, whatever is said of
it. The last `num_kv_shared_layers` attend to keys and values of earlier layers, and may be twice as wide. A config says
whether layers hear of each token what an embedding for them alone says, and whether experts, chosen by a router on the
state itself, stand beside the dense layer; Unified has neither. Scores are not scaled: queries and keys are normed.

Transformers 5 saves what layers that see all have of their own as `per_layer_config`; published configs name it by
`global_head_dim` and `num_global_key_value_heads`. In its 5.24 a Gemma 4 fails whose layers borrow and hear nothing.
Parameters are named as it names those of Gemma4ForCausalLM and Gemma4UnifiedForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import mlx.core as mx

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
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import SandwichBlock
from weightloom.plugins.layers.cache import Cache, make_cache
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM, Decoder, capped
from weightloom.plugins.layers.experts import Experts, weighted_sum
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.per_layer import Heard, Hears, PerLayerDecoder
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.sharing import BorrowersCache, BorrowingAttention, SharingDecoder
from weightloom.plugins.layers.state_router import StateRouter
from weightloom.plugins.layers.value_norm import KeysAsValues, ValueNormAttention
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


@dataclass(frozen=True, kw_only=True)
class UnifiedFields(Fields):
    """The same; defaults are those of a published Gemma 4 Unified."""

    max_position_embeddings: int = 262144
    sliding_window: int | None = 1024
    hidden_size_per_layer_input: int = 0


@dataclass(frozen=True)
class LayerConfig:
    """One layer: its heads, how they turn, what it sees, how wide it is, and whether it borrows keys and values."""

    attention: AttentionShape
    rope: RopeConfig
    window: int | None
    width: int
    borrows: bool


class ExpertsConfig(NamedTuple):
    """The experts of each layer, how many a token goes to, and how wide they are."""

    total: int
    chosen: int
    width: int


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    act: Activation
    layers: tuple[LayerConfig, ...]
    experts: ExpertsConfig | None


def read_gemma4(content: Mapping[str, Any]) -> Config:
    """Read config.json of a Gemma 4's text model; raises ConfigError naming the field that is off."""
    return _checked(read(Fields, content), content)


def read_unified(content: Mapping[str, Any]) -> Config:
    """Read config.json of a Gemma 4 Unified's text model; raises ConfigError naming the field that is off."""
    return _checked(read(UnifiedFields, content), content)


def _checked(fields: Fields, content: Mapping[str, Any]) -> Config:
    fields.check("vocab_size_per_layer_input", "global_head_dim")
    width = fields.hidden_size_per_layer_input
    refuse_non_positive({"hidden_size_per_layer_input": width} if width else {})
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
    found = ExpertsConfig(*(getattr(fields, name) or 0 for name in names))
    refuse_non_positive(dict(zip(names, found, strict=True)))
    refuse_unless(found.chosen <= found.total, "top_k_experts", found.chosen, f"num_experts, {found.total}, at most")
    return found


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

    def __init__(self, config: Config, layer: LayerConfig, attention: Attention) -> None:
        super().__init__(config, layer, attention)
        size, eps, experts = config.fields.hidden_size, config.fields.rms_norm_eps, config.experts
        assert experts is not None
        norm = rms_norm(eps)
        self.router = StateRouter(size, experts.total, experts.chosen, eps)
        self.experts = Experts(experts.total, size, experts.width, config.act)
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
    plain = config.experts is None
    return Gemma4Block(config, layer, attention) if plain else ExpertsBlock(config, layer, attention)


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
    read_config=read_gemma4,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    keeps_bf16=True,
    sharding=DENSE,
)
UNIFIED = replace(
    GEMMA4,
    name="gemma4_unified_text",
    model_types=("gemma4_unified_text",),
    class_names=("Gemma4UnifiedForCausalLM",),
    verified="Transformers 5.24 Gemma4UnifiedForCausalLM",
    read_config=read_unified,
    fields=UnifiedFields,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the text models of Gemma 4 and Gemma 4 Unified."""
        return (GEMMA4, UNIFIED)


PLUGIN = Plugin()
