"""Phi-3.5-MoE: layer norms with biases, and experts chosen one after another (SparseMixer, arXiv 2409.12136).

The best expert counts by its share among those that come near it, then the best of the others by its own share. The
vendor's code turns long contexts by LongRoPE's long list; Transformers 5.24 never does so here. The factor on queries
and keys is `short_mscale`, in published models the same as `long_mscale`, and another is refused. Parameters are named
as Transformers 5 names those of PhimoeForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, window_of
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.norms import layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import Router
from weightloom.plugins.specs import hookimpl

CHOSEN = 2


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int = 16
    num_experts_per_tok: int = CHOSEN
    intermediate_size: int = 6400
    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    router_jitter_noise: float = 0.01
    lm_head_bias: bool = False


@dataclass(frozen=True)
class Config:
    """A config that fits together; `window` None: every layer sees all."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    window: int | None
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    k, noise = fields.num_experts_per_tok, fields.router_jitter_noise
    refuse_unless(k == CHOSEN, "num_experts_per_tok", k, f"{CHOSEN}, which is what this way of choosing gives")
    refuse_unless(noise >= 0, "router_jitter_noise", noise, "0 or more")
    refuse_unless(
        not (fields.lm_head_bias and fields.tie_word_embeddings), "lm_head_bias", True, "false in a tied head"
    )
    whole = fields.sliding_window is None
    return Config(
        fields,
        AttentionShape.of(fields),
        activation(fields.hidden_act),
        window_of(FULL if whole else SLIDING, fields.sliding_window),
        read_rope(_with_factor(content), fields.head_size, fields.max_position_embeddings, 1e6)[FULL],
    )


def _with_factor(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call the factor on queries and keys what other families call it."""
    return {**content, **{name: _one_factor(name, content[name]) for name in _SECTIONS if name in content}}


_SECTIONS = ("rope_parameters", "rope_scaling")


def _one_factor(name: str, section: Any) -> Any:
    if not isinstance(section, Mapping) or "short_mscale" not in section:
        return section
    short, long = section["short_mscale"], section.get("long_mscale")
    refuse_unless(short == long, f"{name}.long_mscale", long, f"short_mscale, {short!r}")
    return {**section, "attention_factor": short}


def one_after_another(noise: float) -> Router:
    """Give SparseMixer's choice: twice the best, weighted by its share among those of 1 - 2 * noise of it or more."""

    def router(scores: mx.array, k: int) -> tuple[mx.array, mx.array]:
        scores = left = scores.astype(mx.float32)
        chosen, weights = [], []
        for _ in range(k):
            top, index = left.max(axis=-1, keepdims=True), mx.argmax(left, axis=-1, keepdims=True)
            far = (top - scores) / mx.maximum(mx.abs(scores), top) > 2 * noise
            shares = mx.softmax(mx.where(far, -mx.inf, left), axis=-1)
            chosen.append(index)
            weights.append(mx.take_along_axis(shares, index, axis=-1))
            left = mx.where(mx.arange(scores.shape[-1]) == index, -mx.inf, left)
        return mx.concatenate(chosen, axis=-1), mx.concatenate(weights, axis=-1)

    return router


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = layer_norm(fields.rms_norm_eps)
    blocks = [
        Block(Attention(config.attention, rope), _mlp(config), fields.hidden_size, norm, config.window)
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings, head_bias=fields.lm_head_bias)


def _mlp(config: Config) -> SparseMlp:
    fields = config.fields
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.act)
    return SparseMlp(experts, one_after_another(fields.router_jitter_noise), CHOSEN, gate="router")


PHIMOE = Architecture(
    name="phimoe",
    model_types=("phimoe",),
    class_names=("PhimoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 PhimoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **EXPERTS},
)


class Plugin:
    """Offers Phi-3.5-MoE."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Phi-3.5-MoE."""
        return (PHIMOE,)


PLUGIN = Plugin()
