"""MiniMax-Text-01 (arXiv 2501.08313): lightning attention in most layers, softmax attention in others, experts in all.

Lightning attention (arXiv 2405.17381) sums keys and values without a softmax; what came before decays, by a rate a head
that falls from layer to layer. A layer adds to what is normed, not to what came, each times a factor of its own.
Parameters are named as Transformers 5 names those of MiniMaxForCausalLM; the decays that it writes beside them follow
from the config. It turns all dims of a head; the vendor's code turns `rotary_dim` of them, as is done here where a
config has that. mlx-lm calls another model minimax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine import Drop, RuleSet
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of, refuse_non_positive, window_of
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.mixing import MixingBlock
from weightloom.plugins.layers.norms import Norm, rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layers.ssd import ssd
from weightloom.plugins.layers.state import State, StateCache, without_padding
from weightloom.plugins.specs import hookimpl

LINEAR = "linear_attention"


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int = 8
    num_experts_per_tok: int = 2
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    rotary_dim: int | None = None
    full_attn_alpha_factor: float = 1.0
    full_attn_beta_factor: float = 1.0
    linear_attn_alpha_factor: float = 1.0
    linear_attn_beta_factor: float = 1.0
    mlp_alpha_factor: float = 1.0
    mlp_beta_factor: float = 1.0


@dataclass(frozen=True)
class Config:
    """A config that fits together; `window` is that of softmax attention."""

    fields: Fields
    kinds: tuple[str, ...]
    attention: AttentionShape
    act: Activation
    window: int | None
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    count, size = fields.num_hidden_layers, fields.head_size
    in_turn = tuple(LINEAR if layer % 2 else FULL for layer in range(count))
    listed = in_turn if fields.layer_types is None else fields.layer_types
    turned = size if fields.rotary_dim is None else fields.rotary_dim
    refuse_non_positive({"rotary_dim": turned})
    refuse_unless(turned <= size, "rotary_dim", turned, f"the size of a head, {size}, at most")
    return Config(
        fields,
        layer_types_of(listed, count, FULL, known=(FULL, LINEAR)),
        AttentionShape.of(fields, bias=False, out_bias=False),
        activation(fields.hidden_act),
        None if fields.sliding_window is None else window_of(SLIDING, fields.sliding_window),
        read_rope(content, size, fields.max_position_embeddings, 1e6, default_part=turned / size)[FULL],
    )


def rates(layer: int, layers: int, heads: int) -> mx.array:
    """Give how fast what a head holds decays, (heads,): slopes as of ALiBi (arXiv 2108.12409), less in later layers."""
    slopes = 2.0 ** (-8 / heads * mx.arange(1, heads + 1, dtype=mx.float32))
    return slopes * (1 - layer / (layers - 1 + 1e-5) + 1e-5)


class LightningAttention(nn.Module):
    """Linear attention whose state (head_dim, head_dim) decays by a head's rate; its output is normed and gated.

    Parameters `qkv_proj` (queries, keys and values of a head in a row), `norm`, `output_gate` and `out_proj`.
    """

    def __init__(self, shape: AttentionShape, act: Activation, decay: mx.array) -> None:
        super().__init__()
        wide = shape.heads * shape.head_dim
        self._shape = shape
        self._act = act
        self._decay = decay
        self.qkv_proj = nn.Linear(shape.hidden_size, 3 * wide, bias=False)
        self.norm = nn.RMSNorm(wide, 1e-6)
        self.output_gate = nn.Linear(shape.hidden_size, wide, bias=False)
        self.out_proj = nn.Linear(wide, shape.hidden_size, bias=False)

    def __call__(self, x: mx.array, mask: Mask, state: State) -> mx.array:
        """Mix tokens (B, L, hidden_size); what they leave is put into `state`."""
        made = without_padding(self._act(self.qkv_proj(x)), state)
        queries, keys, values = mx.split(made.reshape(*x.shape[:2], self._shape.heads, -1), 3, axis=-1)
        mixed, held = ssd(values, mx.ones(keys.shape[:3]), -self._decay, keys, queries, state.get("held"))
        state.put(x.shape[1], held=held)
        normed = self.norm(mixed.astype(x.dtype).flatten(2))
        out: mx.array = self.out_proj(mx.sigmoid(self.output_gate(x)) * normed)
        return out


@dataclass(frozen=True, slots=True)
class Factors:
    """What is normed counts `kept` times, and what a layer makes of it `added` times."""

    kept: float
    added: float

    def sum(self, x: mx.array, made: mx.array) -> mx.array:
        """Add what was made to what it was made of."""
        return x * self.kept + made * self.added


class NormedSumBlock(MixingBlock):
    """Attention, then experts: each gets what is normed, which is also what its output is added to."""

    def __init__(
        self,
        attention: nn.Module,
        mlp: nn.Module,
        norms: tuple[nn.Module, nn.Module],
        factors: tuple[Factors, Factors],
        window: Window,
    ) -> None:
        super().__init__(window)
        self._of_attention, self._of_mlp = factors
        self.self_attn = attention
        self.mlp = mlp
        self.input_layernorm, self.post_attention_layernorm = norms

    def entered(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same, normed."""
        normed: mx.array = self.input_layernorm(x)
        return normed

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what each of the two makes to what it was given."""
        normed = self.post_attention_layernorm(self._of_attention.sum(entered, mixed))
        return self._of_mlp.sum(normed, self.mlp(normed))

    def make_cache(self) -> Any:
        """Give an empty cache: a state, or keys and values."""
        return StateCache() if isinstance(self.self_attn, LightningAttention) else super().make_cache()


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [_block(config, layer, rope, norm) for layer in range(fields.num_hidden_layers)]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, layer: int, rope: Rope, norm: Norm) -> NormedSumBlock:
    fields, size = config.fields, config.fields.hidden_size
    experts = Experts(fields.num_experts, size, fields.intermediate_size, config.act)
    mlp = SparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok)
    norms, of_mlp = (norm(size), norm(size)), Factors(fields.mlp_alpha_factor, fields.mlp_beta_factor)
    if config.kinds[layer] == FULL:
        factors = Factors(fields.full_attn_alpha_factor, fields.full_attn_beta_factor)
        return NormedSumBlock(Attention(config.attention, rope), mlp, norms, (factors, of_mlp), config.window)
    decay = rates(layer, fields.num_hidden_layers, fields.num_attention_heads)
    factors = Factors(fields.linear_attn_alpha_factor, fields.linear_attn_beta_factor)
    return NormedSumBlock(
        LightningAttention(config.attention, config.act, decay), mlp, norms, (factors, of_mlp), config.window
    )


MINIMAX = Architecture(
    name="minimax",
    model_types=("minimax",),
    class_names=("MiniMaxForCausalLM",),
    task="generate",
    verified="Transformers 5.24 MiniMaxForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # Lightning attention is whole on each rank: its norm goes over all heads.
    sharding={**VOCABULARY, **HEADS, **EXPERTS},
    rules=RuleSet([Drop([r"self_attn\.(slope_rate|(query|key|diagonal)_decay)$"], why="they follow from the config")]),
)


class Plugin:
    """Offers MiniMax-Text-01."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer MiniMax-Text-01."""
        return (MINIMAX,)


PLUGIN = Plugin()
