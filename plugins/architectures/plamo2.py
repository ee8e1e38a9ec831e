"""PLaMo 2: Mamba 2 heads whose step sizes and states are projected from what was convolved, and windowed attention.

Every other layer, by `mamba_step`, attends: to all before it if it is in `full_attention_idx`, else to the last
`attention_window_size` tokens and itself. A norm stands before and after each half of a layer; their weights are added
to 1, 1/5, 1 and 5 ** -1.5. Parameters are named as published, `model.layers.layers` being `model.layers` here.
Transformers has no such class. mlx-lm, which answers are compared with, has no windows and keeps step sizes between
0.001 and 100; the published code has windows and no such limits, and so it is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, kv_heads_of, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import silu, softplus
from weightloom.plugins.layers.attention import AttentionShape, FusedAttention
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.cuts import FUSED, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.mixing import MixingBlock
from weightloom.plugins.layers.mlp import FusedMlp
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.ssd import ssd
from weightloom.plugins.layers.state import State, StateCache, without_padding
from weightloom.plugins.specs import hookimpl

HEAD_NORM_EPS = 1e-6


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 13312
    num_hidden_layers: int = 32
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = True
    num_attention_heads: int = 32
    num_key_value_heads: int = 4
    hidden_size_per_head: int = 128
    max_position_embeddings: int = 2048
    attention_window_size: int = 2048
    full_attention_idx: tuple[int, ...] | None = None
    mamba_d_state: int = 64
    mamba_d_conv: int = 4
    mamba_num_heads: int = 64
    mamba_step: int = 2
    mamba_enabled: bool = True

    def attends(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has attention."""
        half, last = self.mamba_step // 2, self.num_hidden_layers - 1
        if not self.mamba_enabled:
            return True
        return layer == last if last < half else layer % self.mamba_step == half

    def window(self, layer: int) -> int | None:
        """Give how many tokens a layer with attention sees, itself among them; None for all."""
        return None if layer in (self.full_attention_idx or ()) else self.attention_window_size + 1


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "rms_norm_eps")
    heads = ("num_attention_heads", "hidden_size_per_head", "attention_window_size")
    mamba = ("mamba_d_state", "mamba_d_conv", "mamba_num_heads")
    refuse_non_positive({name: getattr(fields, name) for name in (*sizes, *heads, *mamba)})
    refuse_unless(fields.mamba_step > 1, "mamba_step", fields.mamba_step, "2 or more")
    head_dim = fields.hidden_size_per_head
    refuse_unless(head_dim % 2 == 0, "hidden_size_per_head", head_dim, "an even number")
    kv_heads = kv_heads_of(fields.num_key_value_heads, fields.num_attention_heads)
    shape = AttentionShape(fields.hidden_size, fields.num_attention_heads, kv_heads, head_dim)
    return Config(fields, shape, read_rope(content, head_dim, fields.max_position_embeddings)[FULL])


class NormedAttention(FusedAttention):
    """Attention with norms of queries and keys that have a weight a head, `q_weight` and `k_weight` (heads, dims)."""

    def __init__(self, shape: AttentionShape, rope: Rope) -> None:
        super().__init__(shape, rope)
        self.q_weight = mx.ones((shape.heads, shape.head_dim))
        self.k_weight = mx.ones((shape.kv_heads, shape.head_dim))

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm queries and keys, (B, L, heads, head_dim) each."""
        queries, keys = (mx.fast.rms_norm(each, None, HEAD_NORM_EPS) for each in (queries, keys))
        return queries * self.q_weight, keys * self.k_weight, values


class Mixer(nn.Module):
    """A Mamba 2 mixer of which each head has its gate beside its inputs, and `bcdt_proj` makes the rest.

    Parameters `in_proj`, `conv1d`, `bcdt_proj`, `dt_proj`, `out_proj`, `A_log`, `D`, `dt_bias`, and the weights of
    norms, `B_norm_weight`, `C_norm_weight` and `dt_norm_weight`.
    """

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self._heads, self._states, self._eps = fields.mamba_num_heads, fields.mamba_d_state, fields.rms_norm_eps
        channels, rank = self._heads * fields.hidden_size_per_head, max(64, fields.hidden_size // 16)
        self.in_proj = nn.Linear(fields.hidden_size, 2 * channels, bias=False)
        self.conv1d = CausalConv1d(channels, fields.mamba_d_conv)
        self.bcdt_proj = nn.Linear(channels, 2 * self._states + rank, bias=False)
        self.dt_proj = nn.Linear(rank, self._heads, bias=False)
        self.out_proj = nn.Linear(channels, fields.hidden_size, bias=False)
        self.A_log, self.D, self.dt_bias = (mx.zeros((self._heads,)) for _ in range(3))
        self.B_norm_weight, self.C_norm_weight = mx.ones((self._states,)), mx.ones((self._states,))
        self.dt_norm_weight = mx.ones((rank,))

    def __call__(self, x: mx.array, mask: Mask, cache: State) -> mx.array:
        """(B, L, hidden_size) -> the same shape; `cache` keeps the states, and a mask says nothing to it."""
        by_head = (*x.shape[:2], self._heads, -1)
        gate, inputs = mx.split(self.in_proj(x).reshape(by_head), 2, axis=-1)
        mixed = without_padding(self.conv1d(inputs.flatten(2), cache, activation=silu), cache)
        b, c, dt = mx.split(self.bcdt_proj(mixed), [self._states, 2 * self._states], axis=-1)
        b, c = self._normed(b, "B_norm_weight"), self._normed(c, "C_norm_weight")
        dt = self.dt_proj(self._normed(dt, "dt_norm_weight"))
        steps = softplus(dt.astype(mx.float32) + self.dt_bias.astype(mx.float32))
        mixed, rates = mixed.reshape(by_head), -mx.exp(self.A_log.astype(mx.float32))
        y, state = ssd(mixed, steps, rates, b[:, :, None], c[:, :, None], cache.get("scan"))
        cache.put(x.shape[1], scan=state)
        y = (y + mixed * self.D.astype(mx.float32)[:, None]) * silu(gate)
        made: mx.array = self.out_proj(y.flatten(2).astype(x.dtype))
        return made

    def _normed(self, x: mx.array, name: str) -> mx.array:
        return mx.fast.rms_norm(x, self[name], self._eps)


class Plamo2Block(MixingBlock):
    """A mixer of tokens, then a feed-forward layer, each between two norms."""

    mixer_name = "mixer"

    def __init__(self, config: Config, rope: Rope, layer: int) -> None:
        fields = config.fields
        size, eps, attends = fields.hidden_size, fields.rms_norm_eps, fields.attends(layer)
        super().__init__(fields.window(layer) if attends else None)
        self._attends = attends
        self.mixer = NormedAttention(config.attention, rope) if attends else Mixer(fields)
        self.mlp = FusedMlp(size, fields.intermediate_size, silu)
        self.pre_mixer_norm = zero_centred_norm(eps)(size)
        self.post_mixer_norm = zero_centred_norm(eps, 1 / 5)(size)
        self.pre_mlp_norm = zero_centred_norm(eps)(size)
        self.post_mlp_norm = zero_centred_norm(eps, 5**-1.5)(size)

    def entered(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same, normed."""
        normed: mx.array = self.pre_mixer_norm(x)
        return normed

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what the two make, normed."""
        x = x + self.post_mixer_norm(mixed)
        added: mx.array = self.post_mlp_norm(self.mlp(self.pre_mlp_norm(x)))
        return x + added

    def make_cache(self) -> Any:
        """Give an empty cache."""
        return super().make_cache() if self._attends else StateCache()


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    blocks = [Plamo2Block(config, rope, layer) for layer in range(fields.num_hidden_layers)]
    norm = zero_centred_norm(fields.rms_norm_eps)(fields.hidden_size)
    return CausalLM(Decoder(fields.vocab_size, fields.hidden_size, norm, blocks), fields.tie_word_embeddings)


PLAMO2 = Architecture(
    name="plamo2",
    model_types=("plamo2",),
    class_names=("Plamo2ForCausalLM",),
    task="generate",
    verified="mlx-lm 0.32.2 plamo2",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **FUSED},
)


class Plugin:
    """Offers PLaMo 2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer PLaMo 2."""
        return (PLAMO2,)


PLUGIN = Plugin()
