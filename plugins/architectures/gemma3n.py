"""The text model of Gemma 3n: several streams of states, inputs a layer, keys and values that layers share.

A token has `altup_num_inputs` streams (AltUp, arXiv 2301.13310). A layer predicts each from all, works on the active
one, and corrects the others by what it changed. Beside attention a low-rank residual is learned (LAuReL, arXiv
2411.07501); gates of the first layers are cut off below what a normal distribution has for their sparsity; the last
layers attend to keys and values of earlier ones. Scores are not scaled, for queries and keys are normed.

mlx-lm 0.32 shares keys and values in its cache alone, so that its answers without one are others. Parameters are named
as Transformers 5 names those of Gemma3nForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    layer_types_of,
    refuse_bidirectional,
    refuse_lonely_borrowers,
    refuse_non_positive,
    refuse_non_positive_where_given,
    window_of,
)
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.rope_sections import with_local_base
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.altup import AltUp, gathered, spread
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import Cache, make_cache
from weightloom.plugins.layers.cuts import HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, capped
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import Norm, rms_norm
from weightloom.plugins.layers.per_layer import Heard, Hears, PerLayerDecoder
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.sharing import BorrowersCache, BorrowingAttention
from weightloom.plugins.layers.value_norm import ValueNormAttention
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. `intermediate_size` may be a list there."""

    vocab_size: int = 262400
    hidden_size: int = 2048
    intermediate_size: int = 16384
    num_hidden_layers: int = 35
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 2
    head_dim: int | None = 256
    hidden_activation: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 32768
    tie_word_embeddings: bool = True
    sliding_window: int | None = 512
    final_logit_softcapping: float | None = 30.0
    vocab_size_per_layer_input: int = 262144
    hidden_size_per_layer_input: int = 256
    altup_active_idx: int = 0
    altup_correct_scale: bool = True
    altup_num_inputs: int = 4
    num_kv_shared_layers: int = 15
    laurel_rank: int = 64
    activation_sparsity_pattern: float | tuple[float, ...] | None = None
    use_bidirectional_attention: bool | None = None


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    intermediate_size: int | tuple[int, ...] = 16384


@dataclass(frozen=True)
class Config:
    """A config that fits together; lists have an entry a layer, `ropes` one a layer type."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    layer_types: tuple[str, ...]
    windows: tuple[int | None, ...]
    sizes: tuple[int, ...]
    sparsities: tuple[float, ...]
    ropes: Mapping[str, RopeConfig]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    said = read(_Sizes, content).intermediate_size
    first = said if isinstance(said, int) else next(iter(said), 0)
    fields = read(Fields, {**content, "intermediate_size": first})
    fields.check("vocab_size_per_layer_input", "hidden_size_per_layer_input", "altup_num_inputs", "laurel_rank")
    refuse_bidirectional(fields.use_bidirectional_attention)
    refuse_non_positive_where_given({"final_logit_softcapping": fields.final_logit_softcapping})
    refuse_unless(fields.altup_num_inputs <= 256, "altup_num_inputs", fields.altup_num_inputs, "256 at most")
    active, streams = fields.altup_active_idx, fields.altup_num_inputs
    refuse_unless(0 <= active < streams, "altup_active_idx", active, f"less than altup_num_inputs, {streams}")
    count = fields.num_hidden_layers
    every = fields.sliding_window_pattern or (5 if fields.layer_types is None else None)
    types = layer_types_of(fields.layer_types, count, FULL, every)
    refuse_lonely_borrowers(types, fields.num_kv_shared_layers)
    shape = AttentionShape.of(fields, norm_eps=fields.rms_norm_eps, scale=1.0)
    return Config(
        fields,
        shape,
        activation(fields.hidden_activation, "hidden_activation"),
        types,
        tuple(window_of(each, fields.sliding_window) for each in types),
        _sizes(said, count),
        _sparsities(fields.activation_sparsity_pattern, count),
        read_rope(with_local_base(content), shape.head_dim, fields.max_position_embeddings, 1000000.0, types),
    )


def _sizes(said: int | tuple[int, ...], count: int) -> tuple[int, ...]:
    found = (said,) * count if isinstance(said, int) else said
    refuse_unless(len(found) == count, "intermediate_size", list(found), f"a size, or one for each of {count} layers")
    for size in found:
        refuse_non_positive({"intermediate_size": size})
    return found


def _sparsities(said: float | tuple[float, ...] | None, count: int) -> tuple[float, ...]:
    """Give the share of each layer's gates that are cut off; unsaid, that is 0.95 of the first ten of more layers."""
    sparse = 10 if count > 10 else 0
    if isinstance(said, tuple):
        found = said
    else:
        found = (0.95,) * sparse + (0.0,) * (count - sparse) if said is None else (float(said),) * count
    fine = len(found) == count and all(0 <= share < 1 for share in found)
    refuse_unless(fine, "activation_sparsity_pattern", said, f"shares below 1, for each of {count} layers")
    return found


class Laurel(nn.Module):
    """A residual of low rank, learned: x + norm(right(left(x)))."""

    def __init__(self, hidden_size: int, rank: int, norm: Norm) -> None:
        super().__init__()
        self.linear_left = nn.Linear(hidden_size, rank, bias=False)
        self.linear_right = nn.Linear(rank, hidden_size, bias=False)
        self.post_laurel_norm = norm(hidden_size)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        added: mx.array = self.post_laurel_norm(self.linear_right(self.linear_left(x)))
        return x + added


class SparseGateMlp(GatedMlp):
    """A gated feed-forward layer of whose gates a share is cut off, taking them as normally distributed."""

    def __init__(self, hidden_size: int, intermediate_size: int, act: Activation, sparsity: float) -> None:
        super().__init__(hidden_size, intermediate_size, act)
        self._deviations = NormalDist().inv_cdf(sparsity)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        gate = self["gate_proj"](x)
        cutoff = gate.mean(axis=-1, keepdims=True) + gate.std(axis=-1, keepdims=True) * self._deviations
        made: mx.array = self["down_proj"](self._product(mx.maximum(gate - cutoff, 0), self["up_proj"](x)))
        return made


class Gemma3nBlock(Hears):
    """A layer, on streams of states."""

    def __init__(self, fields: Fields, attention: Attention, mlp: GatedMlp, act: Activation, window: Window) -> None:
        super().__init__()
        size, norm = fields.hidden_size, rms_norm(fields.rms_norm_eps)
        self.window = window
        self.self_attn = attention
        self.mlp = mlp
        self.altup = AltUp(size, fields.altup_num_inputs, fields.altup_active_idx, norm)
        self._scales = fields.altup_correct_scale
        self.laurel = Laurel(size, fields.laurel_rank, norm)
        self.input_layernorm = norm(size)
        self.post_attention_layernorm = norm(size)
        self.pre_feedforward_layernorm = norm(size)
        self.post_feedforward_layernorm = norm(size)
        self.add_hearing(size, fields.hidden_size_per_layer_input, act, norm)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache, heard: mx.array | None = None) -> mx.array:
        """Streams (B, L, streams, hidden_size) and what is heard of each token (B, L, width) -> streams."""
        assert heard is not None
        predicted = self.altup.predict(x)
        corrected = self.altup.correct(predicted, self._made(self.altup.active(predicted), mask, cache))
        active = self.altup.active(corrected)
        active = active * self.altup.correct_output_scale if self._scales else active
        added = self.from_heard(active, heard)[:, :, None]
        # The first stream hears nothing, whichever is active.
        return mx.concatenate([corrected[:, :, :1], corrected[:, :, 1:] + added], axis=2)

    def _made(self, active: mx.array, mask: Mask, cache: Cache) -> mx.array:
        normed = self.input_layernorm(active)
        attended = active + self.post_attention_layernorm(self.self_attn(normed, mask, cache))
        mixed: mx.array = (attended + self.laurel(normed)) / sqrt(2)
        added: mx.array = self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(mixed)))
        return mixed + added

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return BorrowersCache() if isinstance(self.self_attn, BorrowingAttention) else make_cache(self.window)


class Gemma3nDecoder(PerLayerDecoder):
    """A decoder that makes streams of the embeddings, each as large as those, and of the streams one state again."""

    def __init__(self, fields: Fields, blocks: list[Gemma3nBlock]) -> None:
        heard = Heard(fields.vocab_size_per_layer_input, fields.hidden_size_per_layer_input)
        size, norm = fields.hidden_size, rms_norm(fields.rms_norm_eps)
        super().__init__(fields.vocab_size, size, norm, blocks, fields.num_kv_shared_layers, sqrt(size), heard)
        others = range(1, fields.altup_num_inputs)
        self.altup_projections = [nn.Linear(size, size, bias=False) for _ in others]
        self.altup_unembed_projections = [nn.Linear(size, size, bias=False) for _ in others]

    def through(self, x: mx.array, tokens: mx.array, masks: Mapping[Window, Mask], caches: Sequence[Cache]) -> mx.array:
        """Put x (B, L, hidden_size), which tokens (B, L) became, through the layers as streams; the shape stays."""
        streams = super().through(spread(x, self.altup_projections), tokens, masks, caches)
        return gathered(streams, self.altup_unembed_projections)

    def heard(self, x: mx.array, tokens: mx.array) -> mx.array:
        """Give what the layers hear of tokens (B, L) that became streams: (B, L, layers, width)."""
        return super().heard(x[:, :, 0], tokens)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    ropes = {name: Rope(rope, config.attention.head_dim) for name, rope in config.ropes.items()}
    blocks = [
        Gemma3nBlock(
            fields,
            _attention(config, layer, ropes[config.layer_types[layer]]),
            _mlp(config, layer),
            config.act,
            config.windows[layer],
        )
        for layer in range(fields.num_hidden_layers)
    ]
    return CausalLM(Gemma3nDecoder(fields, blocks), fields.tie_word_embeddings, capped(fields.final_logit_softcapping))


def _attention(config: Config, layer: int, rope: Rope) -> Attention:
    fields, eps = config.fields, config.fields.rms_norm_eps
    if layer < fields.num_hidden_layers - fields.num_kv_shared_layers:
        return ValueNormAttention(config.attention, rope, eps)
    return BorrowingAttention(config.attention, rope, rms_norm(eps))


def _mlp(config: Config, layer: int) -> GatedMlp:
    sizes = (config.fields.hidden_size, config.sizes[layer], config.act)
    sparsity = config.sparsities[layer]
    return SparseGateMlp(*sizes, sparsity) if sparsity else GatedMlp(*sizes)


GEMMA3N = Architecture(
    name="gemma3n_text",
    model_types=("gemma3n_text",),
    class_names=("Gemma3nForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Gemma3nForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    keeps_bf16=True,
    # How gates are cut off depends on the whole width of a feed-forward layer.
    sharding={**VOCABULARY, **HEADS},
)


class Plugin:
    """Offers the text model of Gemma 3n."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the text model of Gemma 3n."""
        return (GEMMA3N,)


PLUGIN = Plugin()
