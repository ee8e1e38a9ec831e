"""gpt-oss (arXiv 2508.10925): experts with biases, a gate that is clamped, sinks beside the scores of attention.

A sink is a score, one a head, of a key whose value is nothing. Every other layer has a window. Of an expert's rows
each gate's is followed by its up's. Parameters are named as Transformers 5 names those of GptOssForCausalLM. Experts in
floats are published (expert, in, out) and are turned to (expert, out, in), as all others here; those in MXFP4 are
published so. mlx-lm 0.32 rounds the ends of YaRN's ramp where the config says `truncate: false`, and then answers
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.engine import RuleSet
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of, refuse_non_positive, window_of
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts, Inner, SparseMlp
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layouts.rows_first import BLOCKS, TURNED, rows_first
from weightloom.plugins.specs import hookimpl

YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int = 128
    num_experts_per_tok: int = 4
    intermediate_size: int = 2880
    num_key_value_heads: int | None = 8
    head_dim: int | None = 64
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    attention_bias: bool = True
    sliding_window: int | None = 128
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0


@dataclass(frozen=True)
class Config:
    """A config that fits together. `windows` has an entry a layer, `ropes` one a layer type."""

    fields: Fields
    attention: AttentionShape
    layer_types: tuple[str, ...]
    windows: tuple[int | None, ...]
    ropes: Mapping[str, RopeConfig]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    refuse_non_positive({"swiglu_limit": fields.swiglu_limit})
    count = fields.num_hidden_layers
    alternating = tuple(FULL if layer % 2 else SLIDING for layer in range(count))
    types = layer_types_of(alternating if fields.layer_types is None else fields.layer_types, count, FULL)
    # A config of Transformers 4 that has null there has plain rope.
    silent = content.get("rope_parameters") is None and "rope_scaling" not in content
    scaled = {**content, "rope_parameters": YARN} if silent else content
    return Config(
        fields,
        AttentionShape.of(fields),
        types,
        tuple(window_of(each, fields.sliding_window) for each in types),
        read_rope(scaled, fields.head_size, fields.max_position_embeddings, 150000.0, types),
    )


class SinkAttention(Attention):
    """Attention with `sinks` (heads,)."""

    def __init__(self, shape: AttentionShape, rope: Rope) -> None:
        super().__init__(shape, rope)
        self.sinks = mx.zeros((shape.heads,))

    def mixed(self, queries: mx.array, keys: mx.array, values: mx.array, mask: Mask) -> mx.array:
        """Mix values, (B, heads, L, head_dim)."""
        return attend(queries, keys, values, self.scale, mask, sinks=self.sinks.astype(queries.dtype))


def clamped_pairs(limit: float) -> Callable[[Activation], Inner]:
    """Give (up + 1) * act(gate) of pairs of gate and up, both clamped at `limit`, the gate from above alone."""

    def of(act: Activation) -> Inner:
        return lambda both: (mx.clip(both[..., 1::2], -limit, limit) + 1) * act(mx.minimum(both[..., ::2], limit))

    return of


def to_rows_first(rules: RuleSet, config: Mapping[str, Any]) -> RuleSet:
    """Lead to stacks with rows first; words of codes are published as blocks, whatever form they were read in."""
    sections = [config.get(name) for name in ("quantization", "quantization_config")]
    said = [each.get(name) for each in sections if isinstance(each, Mapping) for name in ("mode", "quant_method")]
    return rows_first(rules, config, (TURNED.replace(always=False), BLOCKS) if "mxfp4" in said else (TURNED,))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    ropes = {name: Rope(rope, config.attention.head_dim) for name, rope in config.ropes.items()}
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            SinkAttention(config.attention, ropes[layer_type]),
            _mlp(fields),
            fields.hidden_size,
            norm,
            window,
        )
        for layer_type, window in zip(config.layer_types, config.windows, strict=True)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _mlp(fields: Fields) -> SparseMlp:
    sizes = (fields.num_experts, fields.hidden_size, fields.intermediate_size)
    alpha = fields.swiglu_alpha
    experts = Experts(*sizes, lambda x: x * mx.sigmoid(alpha * x), bias=True, inner=clamped_pairs(fields.swiglu_limit))
    return SparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok, gate="router", bias=True)


GPT_OSS = Architecture(
    name="gpt_oss",
    model_types=("gpt_oss",),
    class_names=("GptOssForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GptOssForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    rewrite_rules=to_rows_first,
    # A bias of rows that are summed over ranks would be added by each of them: experts are shared out whole.
    sharding={
        **VOCABULARY,
        r"self_attn\.([qkv]_proj\.|sinks$)": "column",
        r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
        r"mlp\.experts\.": "expert",
    },
)


class Plugin:
    """Offers gpt-oss."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer gpt-oss."""
        return (GPT_OSS,)


PLUGIN = Plugin()
