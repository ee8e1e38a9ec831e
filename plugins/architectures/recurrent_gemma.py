"""RecurrentGemma (arXiv 2404.07839): Griffin's real-gated linear recurrence and local attention (arXiv 2402.19427).

Block types repeat as `block_types` lists them; the first published configs call the list `_block_types`, which
Transformers passes over. mlx-lm asks for `rope_theta` and turns by 10000 whatever it says. Embeddings are multiplied by
the square root of the hidden size, rounded to bfloat16 as the vendor trained it. Heads have an equal part of the
hidden size, and a half of it turns.
Parameters are named as Transformers 5 names those of RecurrentGemmaForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine.errors import ConfigError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.rope_kinds import DefaultRope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation, softplus
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import positions_of
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.cuts import VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names, capped
from weightloom.plugins.layers.linear_recurrence import linear_recurrence
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.state import State, StateCache, without_padding
from weightloom.plugins.specs import hookimpl

RECURRENT, ATTENTION = "recurrent", "attention"
PARTS = Parts("temporal_block", "temporal_pre_norm", "mlp_block", "channel_pre_norm")
# What the paper calls c: the sharpest decay is exp(-8 softplus(parameter)).
_SHARPNESS = 8.0


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 256000
    hidden_size: int = 2560
    intermediate_size: int = 7680
    num_hidden_layers: int = 26
    num_attention_heads: int = 10
    hidden_activation: str = "gelu_pytorch_tanh"
    tie_word_embeddings: bool = True
    lru_width: int | None = None
    conv1d_width: int = 4
    attention_window_size: int = 2048
    logits_soft_cap: float = 30.0
    block_types: tuple[str, ...] | None = None
    _block_types: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """How many numbers a recurrence holds."""
        return self.hidden_size if self.lru_width is None else self.lru_width

    def types(self) -> tuple[str, ...]:
        """Give each layer's type; raises ConfigError for a list that has none, or another type."""
        listed = self.block_types or self._block_types or (RECURRENT, RECURRENT, ATTENTION)
        unknown = [each for each in listed if each not in (RECURRENT, ATTENTION)]
        if unknown:
            field, expected = "block_types" if self.block_types else "_block_types", f"{RECURRENT} or {ATTENTION}"
            raise ConfigError(f"{field} has {unknown[0]!r}", expected=expected, field=field)
        return tuple(listed[layer % len(listed)] for layer in range(self.num_hidden_layers))


@dataclass(frozen=True)
class Config:
    """A config that fits together; `types` has an entry a layer."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    types: tuple[str, ...]
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("conv1d_width", "attention_window_size", "logits_soft_cap")
    refuse_non_positive({"lru_width": fields.width})
    heads, wide = fields.num_attention_heads, fields.intermediate_size
    refuse_unless(fields.hidden_size % heads == 0, "hidden_size", fields.hidden_size, f"a multiple of {heads} heads")
    refuse_unless(fields.width % heads == 0, "lru_width", fields.width, f"a multiple of num_attention_heads, {heads}")
    refuse_unless(wide % 2 == 0, "intermediate_size", wide, "an even number: gate and up have a half each")
    size = fields.hidden_size // heads
    rope = read_rope(content, size, fields.max_position_embeddings, default_part=0.5)[FULL]
    refuse_unless(isinstance(rope.kind, DefaultRope), "rope_scaling", rope.kind, "plain rotary embeddings")
    shape = AttentionShape(fields.hidden_size, heads, fields.kv_heads, size, bias=fields.attention_bias, out_bias=True)
    return Config(fields, shape, activation(fields.hidden_activation, "hidden_activation"), fields.types(), rope)


class RealGatedRecurrence(nn.Module):
    """RG-LRU: numbers that decay by gates of their own and take in what gates let through, a matrix a head and gate.

    With r and i the logistic functions of the two gates, a = exp(-8 softplus(p) r), the state is a times the last one
    plus sqrt(1 - a²) i x; the first token's is i x. Parameters `recurrent_param` p (W,), `recurrent_gate_weight` and
    `input_gate_weight` (heads, W / heads, W / heads), inputs in rows, and their biases (heads, W / heads).
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        each = width // heads
        self.recurrent_param = mx.zeros((width,))
        for gate in ("input_gate", "recurrent_gate"):
            self[f"{gate}_weight"] = mx.zeros((heads, each, each))
            self[f"{gate}_bias"] = mx.zeros((heads, each))

    def __call__(self, x: mx.array, state: State) -> mx.array:
        """Mix tokens (B, L, W) over time; `state` takes the last one's numbers, in float32."""
        rate = softplus(self.recurrent_param.astype(mx.float32))
        log_decay = -_SHARPNESS * self._gate("recurrent_gate", x).astype(mx.float32) * rate
        first = (positions_of(state, x.shape[1]) == 0)[..., None]
        taken = mx.where(first, 1.0, mx.sqrt(-mx.expm1(2 * log_decay)))
        added = without_padding(x * self._gate("input_gate", x) * taken.astype(x.dtype), state)
        states, last = linear_recurrence(mx.where(first, 0.0, mx.exp(log_decay)), added, state.get("numbers"))
        state.put(0, numbers=last)
        return states.astype(x.dtype)

    def _gate(self, name: str, x: mx.array) -> mx.array:
        """(B, L, W) -> a gate between 0 and 1, (B, L, W)."""
        weight, bias = self[f"{name}_weight"], self[f"{name}_bias"]
        by_head = x.reshape(*x.shape[:2], weight.shape[0], -1).transpose(0, 2, 1, 3)
        return mx.sigmoid(by_head @ weight + bias[:, None]).transpose(0, 2, 1, 3).flatten(2)


class RecurrentMixer(nn.Module):
    """A short convolution and the recurrence, times an activated branch beside them."""

    def __init__(self, fields: Fields, act: Activation) -> None:
        super().__init__()
        self._act = act
        self.linear_y = nn.Linear(fields.hidden_size, fields.width)
        self.linear_x = nn.Linear(fields.hidden_size, fields.width)
        self.conv_1d = CausalConv1d(fields.width, fields.conv1d_width, bias=True)
        self.rg_lru = RealGatedRecurrence(fields.width, fields.num_attention_heads)
        self.linear_out = nn.Linear(fields.width, fields.hidden_size)

    def __call__(self, x: mx.array, mask: Mask, state: State) -> mx.array:
        """Mix tokens (B, L, hidden_size); `state` takes what the convolution sees and what the recurrence holds."""
        mixed = self.rg_lru(self.conv_1d(self.linear_x(x), state), state)
        made: mx.array = self.linear_out(mixed * self._act(self.linear_y(x)))
        state.put(x.shape[1])
        return made


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, zero_centred_norm(config.fields.rms_norm_eps)
    rope = Rope(config.rope, config.attention.head_dim)
    blocks = [_block(config, block_type, rope) for block_type in config.types]
    scale = cast(float, mx.array(fields.hidden_size**0.5).astype(mx.bfloat16).item())
    names = Names(norm="final_norm")
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, scale, names)
    return CausalLM(decoder, fields.tie_word_embeddings, capped(fields.logits_soft_cap))


def _block(config: Config, block_type: str, rope: Rope) -> MixerBlock:
    fields, norm = config.fields, zero_centred_norm(config.fields.rms_norm_eps)
    mlp = GatedMlp(fields.hidden_size, fields.intermediate_size // 2, config.act, bias=True)
    if block_type == RECURRENT:
        return MixerBlock(RecurrentMixer(fields, config.act), mlp, fields.hidden_size, norm, PARTS, cache=StateCache)
    window = fields.attention_window_size
    return MixerBlock(Attention(config.attention, rope), mlp, fields.hidden_size, norm, PARTS, window)


RECURRENT_GEMMA = Architecture(
    name="recurrent_gemma",
    model_types=("recurrent_gemma",),
    class_names=("RecurrentGemmaForCausalLM",),
    task="generate",
    verified="Transformers 5.24 RecurrentGemmaForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        **VOCABULARY,
        r"temporal_block\.[qkv]_proj\.": "column",
        r"temporal_block\.o_proj\.(weight|scales|biases)$": "row",
        **gated("mlp_block"),
    },
)


class Plugin:
    """Offers RecurrentGemma."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer RecurrentGemma."""
        return (RECURRENT_GEMMA,)


PLUGIN = Plugin()
