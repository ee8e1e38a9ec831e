"""Kimi Linear (arXiv 2510.26692): delta rules whose memories decay row by row, latent attention in some layers, MoE.

Nothing turns: what would in latent attention is there and stays as it is. Published configs have the sizes of linear
attention in `linear_attn_config`, and there the layers of both kinds by number, from 1. All but the first layers have
experts, chosen by corrected scores among those of the best groups, and a shared one.
Parameters are named as Transformers 5 names those of KimiLinearForCausalLM, one convolution for queries, keys, values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, layer_types_of
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.latent_fields import LatentFields
from weightloom.plugins.configs.linear_fields import LINEAR, SIZES, refuse_linear_sizes
from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.activations import Activation, activation, softplus
from weightloom.plugins.layers.cuts import VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.delta_net import DeltaMixer, DeltaShape, GatedNorm, Projected
from weightloom.plugins.layers.latent_attention import LatentAttention, LatentShape
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.scored_experts import CUTS, feed_forward
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl

SECTION = "linear_attn_config"


@dataclass(frozen=True, kw_only=True)
class Section:
    """What published configs say of linear attention in a section of its own; layers are counted from 1."""

    head_dim: int | None = None
    num_heads: int | None = None
    short_conv_kernel_size: int | None = None
    full_attn_layers: tuple[int, ...] | None = None
    kda_layers: tuple[int, ...] | None = None

    def types(self, count: int) -> tuple[str, ...] | None:
        """Give each layer's type, None where the section lists none; raises ConfigError where they do not add up."""
        if self.full_attn_layers is None or self.kda_layers is None:
            return None
        listed = sorted((*self.full_attn_layers, *self.kda_layers))
        expected = f"each layer from 1 to {count} once, there or in kda_layers"
        full = self.full_attn_layers
        refuse_unless(listed == list(range(1, count + 1)), f"{SECTION}.full_attn_layers", full, expected)
        return tuple(FULL if layer in full else LINEAR for layer in range(1, count + 1))


@dataclass(frozen=True, kw_only=True)
class Fields(ScoredFields, LatentFields):
    """What config.json says; defaults are the published ones."""

    called: ClassVar[Mapping[str, str]] = {
        "n_routed_experts": "num_experts",
        "n_shared_experts": "num_shared_experts",
        "num_experts_per_tok": "num_experts_per_token",
        "norm_topk_prob": "moe_renormalize",
        "n_group": "num_expert_group",
    }

    vocab_size: int = 163840
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 27
    num_attention_heads: int = 32
    rms_norm_eps: float = 1e-5
    q_lora_rank: int | None = None
    moe_intermediate_size: int = 1024
    n_routed_experts: int = 256
    n_shared_experts: int | None = 1
    num_experts_per_tok: int = 8
    first_k_dense_replace: int = 1
    n_group: int | None = 1
    topk_group: int | None = 1
    routed_scaling_factor: float = 2.446
    linear_head_dim: int = 128
    linear_num_heads: int = 32
    linear_conv_kernel_dim: int = 4

    def types(self, section: Section) -> tuple[str, ...]:
        """Give each layer's type: as listed, here or in the section, else one in four is full, from the fifth on."""
        count = self.num_hidden_layers
        otherwise = tuple(FULL if layer and layer % 4 == 0 else LINEAR for layer in range(count))
        listed = section.types(count) if self.layer_types is None else self.layer_types
        return layer_types_of(listed or otherwise, count, LINEAR, known=(FULL, LINEAR))

    def delta(self, section: Section) -> DeltaShape:
        """Give the sizes of linear attention, the section's first; raises ConfigError naming the field."""
        said = [
            (own, getattr(self, own))
            if getattr(section, name) is None
            else (f"{SECTION}.{name}", getattr(section, name))
            for name, own in OWN.items()
        ]
        heads, width, kernel = said
        fields = dict(zip(SIZES, (heads, heads, width, width, kernel), strict=True))
        sizes = {name: size for name, (_, size) in fields.items()}
        refuse_linear_sizes(sizes, {name: field for name, (field, _) in fields.items()})
        return DeltaShape(self.hidden_size, *sizes.values())


# What the fields of a section are called outside it.
OWN = {
    "num_heads": "linear_num_heads",
    "head_dim": "linear_head_dim",
    "short_conv_kernel_size": "linear_conv_kernel_dim",
}


@dataclass(frozen=True)
class Config:
    """A config that fits together; `types` has an entry a layer."""

    fields: Fields
    attention: LatentShape
    delta: DeltaShape
    act: Activation
    types: tuple[str, ...]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content, Fields.called)
    fields.check()
    fields.check_parts()
    fields.check_experts()
    section = _section(content.get(SECTION))
    return Config(
        fields,
        LatentShape.without_turning(fields),
        fields.delta(section),
        activation(fields.hidden_act),
        fields.types(section),
    )


def _section(given: Any) -> Section:
    refuse_unless(given is None or isinstance(given, Mapping), SECTION, given, "an object or null")
    names = {name: f"{SECTION}.{name}" for name in Section.__dataclass_fields__}
    return read(Section, {f"{SECTION}.{name}": value for name, value in (given or {}).items()}, names)


class ForgetGate(nn.Module):
    """Makes logarithms of decays, a number for each row of a memory, through a narrow pair of matrices.

    Parameters `f_a_proj`, `f_b_proj`, `dt_bias` (heads * head_dim,) and `A_log` (1, 1, heads, 1).
    """

    def __init__(self, shape: DeltaShape) -> None:
        super().__init__()
        self.f_a_proj = nn.Linear(shape.hidden_size, shape.key_dim, bias=False)
        self.f_b_proj = nn.Linear(shape.key_dim, shape.keys, bias=False)
        self.dt_bias = mx.zeros((shape.keys,))
        self.A_log = mx.zeros((1, 1, shape.key_heads, 1))

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> (B, L, heads, head_dim), float32, 0 or less."""
        rates = mx.exp(self.A_log.astype(mx.float32))
        steps = self.f_b_proj(self.f_a_proj(x)).astype(mx.float32) + self.dt_bias.astype(mx.float32)
        return -rates * softplus(steps).reshape(*x.shape[:2], rates.shape[2], -1)


class KimiDeltaAttention(DeltaMixer):
    """A delta mixer whose decays are a number a row, and whose gate is a logistic one."""

    def __init__(self, shape: DeltaShape, act: Activation, eps: float) -> None:
        inputs = {
            "q_proj": shape.keys,
            "k_proj": shape.keys,
            "v_proj": shape.values,
            "g_a_proj": shape.value_dim,
            "b_proj": shape.value_heads,
        }
        super().__init__(shape, act, inputs)
        self.forget_gate = ForgetGate(shape)
        self.g_b_proj = nn.Linear(shape.value_dim, shape.values, bias=False)
        self.o_norm = GatedNorm(shape.value_dim, eps, mx.sigmoid)
        self.o_proj = nn.Linear(shape.values, shape.hidden_size, bias=False)

    def project(self, x: mx.array) -> Projected:
        """(B, L, hidden_size) -> what the rule works on."""
        *mixed, gate, rate = self.projected(x)
        return Projected(mx.concatenate(mixed, axis=-1), self.g_b_proj(gate), rate, self.forget_gate(x))

    def log_decay(self, step: mx.array) -> mx.array:
        """Give what the forget gate made."""
        return step

    def out(self, read: mx.array, gate: mx.array) -> mx.array:
        """What was read and the gate, (B, L, heads, head_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.o_proj(self.o_norm(read, gate).flatten(2))
        return made


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [_block(config, layer) for layer in range(fields.num_hidden_layers)]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, layer: int) -> MixerBlock:
    fields, norm = config.fields, rms_norm(config.fields.rms_norm_eps)
    mlp = feed_forward(fields, layer, config.act, Scoring.of(fields))
    if config.types[layer] == FULL:
        return MixerBlock(LatentAttention(config.attention, None), mlp, fields.hidden_size, norm, Parts())
    mixer = KimiDeltaAttention(config.delta, config.act, fields.rms_norm_eps)
    return MixerBlock(mixer, mlp, fields.hidden_size, norm, Parts(), cache=StateCache)


KIMI_LINEAR = Architecture(
    name="kimi_linear",
    model_types=("kimi_linear",),
    class_names=("KimiLinearForCausalLM",),
    task="generate",
    verified="Transformers 5.24 KimiLinearForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **CUTS},
)


class Plugin:
    """Offers Kimi Linear."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Kimi Linear."""
        return (KIMI_LINEAR,)


PLUGIN = Plugin()
