"""ERNIE 4.5 with experts: shares among all experts, chosen with a correction beside them, and shared experts.

The correction balances the experts and is in the choice alone: weights are the shares of the chosen over their sum. The
first layers are dense; neighbours of a head turn against each other; biases by `use_bias`. Parameters are named as
Transformers 5 names those of Ernie4_5_MoeForCausalLM. mlx-lm 0.32 leaves the correction out, and answers otherwise;
what it has written is loaded without one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, WIDEST, refuse_too_many_chosen
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import DENSE, EXPERTS, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import best
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. `use_bias` is for all matrices but the experts'."""

    num_key_value_heads: int | None = 4
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    tie_word_embeddings: bool = True
    use_bias: bool = False
    moe_intermediate_size: int = 1536
    moe_k: int = 6
    moe_num_experts: int = 64
    moe_num_shared_experts: int = 2
    moe_layer_start_index: int = 1
    moe_layer_end_index: int = -1
    moe_layer_interval: int = 1
    moe_norm_min: float = 1e-12

    def is_sparse(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has experts; an end of -1 is the last layer."""
        end = self.num_hidden_layers - 1 if self.moe_layer_end_index == -1 else self.moe_layer_end_index
        return (layer + 1) % self.moe_layer_interval == 0 and self.moe_layer_start_index <= layer <= end


@dataclass(frozen=True)
class Config:
    """A config that fits together. Only a checkpoint says whether shares are `corrected`."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig
    corrected: bool = True


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("moe_k", "moe_num_experts", "moe_intermediate_size", "moe_layer_interval")
    refuse_too_many_chosen(fields.moe_k, fields.moe_num_experts, "moe_num_experts", "moe_k")
    shared, bias = fields.moe_num_shared_experts, fields.use_bias
    fits = 0 <= shared * fields.moe_intermediate_size <= 8 * WIDEST
    refuse_unless(fits, "moe_num_shared_experts", shared, f"0 or more, {8 * WIDEST} wide together at most")
    tied = bias and fields.tie_word_embeddings
    refuse_unless(
        not tied, "tie_word_embeddings", True, "false where there are biases (use_bias): the head has its own"
    )
    return Config(
        fields,
        AttentionShape.of(fields, bias=bias, out_bias=bias),
        activation(fields.hidden_act),
        read_rope(content, fields.head_size, fields.max_position_embeddings, 500000.0)[FULL],
    )


def adapt(config: Config, names: Collection[str]) -> Config:
    """Do without corrections where a checkpoint has none."""
    return replace(config, corrected=any(name.endswith("e_score_correction_bias") for name in names))


class Corrections(nn.Module):
    """What is added to shares to choose, `e_score_correction_bias` (1, E)."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.e_score_correction_bias = mx.zeros((1, count))


class Gate(nn.Module):
    """A router, `weight` (E, H), and its corrections, `moe_statics`, if any; no linear layer, so that none packs it."""

    def __init__(self, hidden_size: int, count: int, corrected: bool) -> None:
        super().__init__()
        self.weight = mx.zeros((count, hidden_size))
        if corrected:
            self.moe_statics = Corrections(count)

    def __call__(self, tokens: mx.array) -> mx.array:
        """Tokens (N, H) -> the score of each expert, (N, E) float32."""
        return tokens.astype(mx.float32) @ self.weight.astype(mx.float32).T

    def corrected(self, shares: mx.array) -> mx.array:
        """Shares (N, E) float32 -> what decides on the experts, (N, E) float32."""
        if "moe_statics" not in self:
            return shares
        return shares + self.moe_statics.e_score_correction_bias.astype(mx.float32)


class CorrectedSparseMlp(SparseMlp):
    """A `gate` with corrections, the `experts`, and `shared_experts` in one layer, if any."""

    def __init__(self, fields: Fields, act: Activation, corrected: bool) -> None:
        hidden, inner = fields.hidden_size, fields.moe_intermediate_size
        super().__init__(Experts(fields.moe_num_experts, hidden, inner, act), self._chosen, fields.moe_k)
        self._floor = fields.moe_norm_min
        self.gate = Gate(hidden, fields.moe_num_experts, corrected)
        if fields.moe_num_shared_experts:
            self.shared_experts = GatedMlp(hidden, inner * fields.moe_num_shared_experts, act, fields.use_bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, H) -> the same shape: what the chosen experts make, weighted, and what the shared ones make."""
        mixed = super().__call__(x)
        return mixed + self.shared_experts(x) if "shared_experts" in self else mixed

    def _chosen(self, scores: mx.array, k: int) -> tuple[mx.array, mx.array]:
        shares = mx.softmax(scores, axis=-1)
        chosen = best(self.gate.corrected(shares), k)
        weights = mx.take_along_axis(shares, chosen, axis=-1)
        return chosen, weights / mx.maximum(weights.sum(axis=-1, keepdims=True), self._floor)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim, interleaved=True)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(Attention(config.attention, rope), _mlp(config, layer), fields.hidden_size, norm)
        for layer in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings, head_bias=fields.use_bias)


def _mlp(config: Config, layer: int) -> nn.Module:
    fields = config.fields
    if fields.is_sparse(layer):
        return CorrectedSparseMlp(fields, config.act, config.corrected)
    return GatedMlp(fields.hidden_size, fields.intermediate_size, config.act, fields.use_bias)


ERNIE4_5_MOE = Architecture(
    name="ernie4_5_moe",
    model_types=("ernie4_5_moe",),
    class_names=("Ernie4_5_MoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Ernie4_5_MoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    adapt=adapt,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**DENSE, **gated("shared_experts"), **EXPERTS},
)


class Plugin:
    """Offers ERNIE 4.5 with experts."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer ERNIE 4.5 with experts."""
        return (ERNIE4_5_MOE,)


PLUGIN = Plugin()
