"""RWKV-7 (arXiv 2503.14456): no attention; a memory that each token decays and rewrites, and layers that see one back.

Parameters are named as published checkpoints name those of RWKV7ForCausalLM (the flash-linear-attention library's):
vectors of heads flat. Transformers has no such class; mlx-lm is the reference here. It has no model without biases of
norms (`norm_bias`) or without a norm before the first layer (`norm_first`), and its group norm adds 64e-5, where the
published class adds head_dim times `norm_eps`: the same for heads of 64. Layers of plain attention (`attn`) and values
of another width (`value_dim`) are refused. What comes from layer to layer is the hidden states and beside them the
values of the first layer, which the others blend into theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.cache import Cache
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.state import State, StateCache, without_padding
from weightloom.plugins.layers.wkv import wkv
from weightloom.plugins.specs import hookimpl

MIXED = ("r", "w", "k", "v", "a", "g")


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    decay_low_rank_dim: int
    gate_low_rank_dim: int
    a_low_rank_dim: int
    v_low_rank_dim: int
    intermediate_size: int | None = None
    hidden_ratio: float | None = 4.0
    head_dim: int = 64
    hidden_act: str = "sqrelu"
    norm_first: bool = True
    norm_bias: bool = True
    norm_eps: float = 1e-5
    tie_word_embeddings: bool = False
    attn: Mapping[str, Any] | None = None
    value_dim: int | tuple[int, ...] | None = None

    @property
    def inner(self) -> int:
        """The width of the feed-forward layers: as given, else a multiple of 32."""
        if self.intermediate_size is not None:
            return self.intermediate_size
        return -(-int(self.hidden_size * (self.hidden_ratio or 4.0)) // 32) * 32


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    act: Activation


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "head_dim", "norm_eps")
    ranks = ("decay_low_rank_dim", "gate_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim")
    refuse_non_positive({name: getattr(fields, name) for name in (*sizes, *ranks)})
    refuse_non_positive({"hidden_ratio": fields.hidden_ratio or 4.0, "intermediate_size": fields.inner})
    hidden, each = fields.hidden_size, fields.head_dim
    refuse_unless(hidden % each == 0, "head_dim", each, f"a divisor of hidden_size, {hidden}")
    refuse_unless(fields.attn is None, "attn", fields.attn, "null: layers of plain attention are not known here")
    widths = fields.value_dim if isinstance(fields.value_dim, tuple) else (fields.value_dim or hidden,)
    refuse_unless(set(widths) <= {hidden}, "value_dim", fields.value_dim, f"hidden_size, {hidden}, in each layer")
    return Config(fields, activation(fields.hidden_act))


def shifted(x: mx.array, state: State, name: str) -> mx.array:
    """Give for each token (B, L, C) the one before it, 0 before the first; `state` keeps the last under `name`."""
    before = state.get(name)
    before = mx.zeros_like(x[:, :1]) if before is None else before
    state.put(0, **{name: x[:, -1:]})
    return mx.concatenate([before, x[:, :-1]], axis=1)


class LowRank(nn.Module):
    """up(act(down(x))); parameters `lora.0` and `lora.2`, the activation between them."""

    def __init__(self, size: int, rank: int, act: nn.Module, bias: bool = True) -> None:
        super().__init__()
        self.lora = [nn.Linear(size, rank, bias=False), act, nn.Linear(rank, size, bias=bias)]

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, size) -> the same shape."""
        down, act, up = self.lora
        made: mx.array = up(act(down(x)))
        return made


class GroupNorm(nn.Module):
    """A layer norm of each head by itself; `weight` and `bias` (heads * head_dim,)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self._eps = eps
        self.weight, self.bias = mx.ones((size,)), mx.zeros((size,))

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, heads, head_dim) -> (B, L, heads * head_dim)."""
        return mx.fast.layer_norm(x, None, None, self._eps).flatten(2) * self.weight + self.bias


class TimeMixing(nn.Module):
    """Mixes tokens through each head's memory; six blends of a token and the one before it make what that takes."""

    def __init__(self, fields: Fields, layer: int) -> None:
        super().__init__()
        size, self._head_dim = fields.hidden_size, fields.head_dim
        for name in MIXED:
            self[f"x_{name}"] = mx.zeros((1, 1, size))
        self.k_k, self.k_a = mx.zeros((size,)), mx.zeros((size,))
        self.r_k = mx.zeros((size // fields.head_dim, fields.head_dim))
        for name in ("r_proj", "k_proj", "v_proj", "o_proj"):
            self[name] = nn.Linear(size, size, bias=False)
        self.w_lora = LowRank(size, fields.decay_low_rank_dim, nn.Tanh())
        self.a_lora = LowRank(size, fields.a_low_rank_dim, nn.Identity())
        self.g_lora = LowRank(size, fields.gate_low_rank_dim, nn.Sigmoid(), bias=False)
        if layer > 0:
            self.v_lora = LowRank(size, fields.v_low_rank_dim, nn.Identity())
        self.g_norm = GroupNorm(size, fields.head_dim * fields.norm_eps)

    def __call__(self, x: mx.array, first: mx.array, state: State) -> tuple[mx.array, mx.array]:
        """Give what tokens (B, L, C) are mixed to, and the values of the first layer; `first` are these, in others."""
        x = without_padding(x, state)
        delta = shifted(x, state, "mixed") - x
        xr, xw, xk, xv, xa, xg = (x + delta * self[f"x_{name}"] for name in MIXED)
        receptance, key, value = (self[f"{part}_proj"](each) for part, each in (("r", xr), ("k", xk), ("v", xv)))
        value = without_padding(value, state)
        if "v_lora" in self:
            value = value + (first - value) * mx.sigmoid(self.v_lora(xv))
        else:
            first = value
        rate = mx.sigmoid(self.a_lora(xa))
        along = self._unit(key * self.k_k)
        key = self._by_head(key * (1 + (rate - 1) * self.k_a))
        log_decay = -exp(-0.5) * mx.sigmoid(self.w_lora(xw).astype(mx.float32))
        receptance, value, rate, log_decay = map(self._by_head, (receptance, value, rate, log_decay))
        read, memory = wkv(receptance, log_decay, key, value, -along, along * rate, state.get("memory"))
        state.put(0, memory=memory)
        own = (receptance * key * self.r_k).sum(axis=-1, keepdims=True) * value
        mixed = self.g_norm(read.astype(x.dtype)) + own.flatten(2)
        return self["o_proj"](mixed * self.g_lora(xg)), first

    def _by_head(self, x: mx.array) -> mx.array:
        return x.reshape(*x.shape[:2], -1, self._head_dim)

    def _unit(self, x: mx.array) -> mx.array:
        """Give each head's vector over its length, float32."""
        by_head = self._by_head(x).astype(mx.float32)
        return by_head / mx.maximum(mx.linalg.norm(by_head, axis=-1, keepdims=True), 1e-12)


class ChannelMixing(nn.Module):
    """value(act(key(blend))) of a blend of a token and the one before it."""

    def __init__(self, fields: Fields, act: Activation) -> None:
        super().__init__()
        self._act = act
        self.x_k = mx.zeros((fields.hidden_size,))
        self.key = nn.Linear(fields.hidden_size, fields.inner, bias=False)
        self.value = nn.Linear(fields.inner, fields.hidden_size, bias=False)

    def __call__(self, x: mx.array, state: State) -> mx.array:
        """(B, L, C) -> the same shape; `state` takes the last token."""
        x = without_padding(x, state)
        blend = x + (shifted(x, state, "fed") - x) * self.x_k
        made: mx.array = self.value(self._act(self.key(blend)))
        return made


class RwkvBlock(nn.Module):
    """Time mixing, then channel mixing, each after a norm and added to what came."""

    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        fields = config.fields
        self.window: Window = None
        if layer == 0 and fields.norm_first:
            self.pre_norm = _norm(fields)
        self.attn_norm, self.ffn_norm = _norm(fields), _norm(fields)
        self.attn, self.ffn = TimeMixing(fields, layer), ChannelMixing(fields, config.act)

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """Hidden states and the first layer's values side by side, (B, L, 2 * C) -> the same shape."""
        x, first = mx.split(x, 2, axis=-1)
        x = self.pre_norm(x) if "pre_norm" in self else x
        mixed, first = self.attn(self.attn_norm(x), first, cache)
        x = x + mixed
        x = x + self.ffn(self.ffn_norm(x), cache)
        cache.put(x.shape[1])
        return mx.concatenate([x, first], axis=-1)

    def make_cache(self) -> StateCache:
        """Give an empty cache."""
        return StateCache()


class LastNorm(nn.LayerNorm):
    """The norm of hidden states that have the first layer's values beside them."""

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, 2 * C) -> (B, L, C)."""
        normed: mx.array = super().__call__(mx.split(x, 2, axis=-1)[0])
        return normed


class RwkvDecoder(Decoder):
    """A decoder whose layers hand on the first one's values beside the hidden states."""

    def embed(self, tokens: mx.array, first: Cache, dtype: mx.Dtype) -> mx.array:
        """Tokens (B, L) int -> embeddings and room for values, (B, L, 2 * C), `dtype`."""
        embedded = super().embed(tokens, first, dtype)
        return mx.concatenate([embedded, mx.zeros_like(embedded)], axis=-1)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    norm = LastNorm(fields.hidden_size, fields.norm_eps, bias=fields.norm_bias)
    blocks = [RwkvBlock(config, layer) for layer in range(fields.num_hidden_layers)]
    decoder = RwkvDecoder(fields.vocab_size, fields.hidden_size, norm, blocks, names=Names(embedding="embeddings"))
    return CausalLM(decoder, fields.tie_word_embeddings)


def _norm(fields: Fields) -> nn.LayerNorm:
    return nn.LayerNorm(fields.hidden_size, fields.norm_eps, bias=fields.norm_bias)


RWKV7 = Architecture(
    name="rwkv7",
    model_types=("rwkv7",),
    class_names=("RWKV7ForCausalLM",),
    task="generate",
    verified="mlx-lm 0.32.2 rwkv7",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
)


class Plugin:
    """Offers RWKV-7."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer RWKV-7."""
        return (RWKV7,)


PLUGIN = Plugin()
