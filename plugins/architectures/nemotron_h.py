"""Nemotron-H (arXiv 2504.03624) and Nemotron 3: each layer is Mamba 2, attention, a feed-forward layer or experts.

`layers_block_type`, or as published `hybrid_override_pattern`, says which. There are no position embeddings, and no
gates in feed-forward layers and experts; `moe_latent_size` has experts work on fewer numbers than a token has.
Parameters are named as Transformers 5 names those of NemotronHForCausalLM, the experts stacked.

Step sizes are kept within `time_step_limit`, as in the published code. Transformers has `time_step_min` for the least
instead, in a prompt and not in what is generated after it, and no biases in attention whatever `attention_bias` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    kv_heads_of,
    refuse_non_positive,
    refuse_non_positive_where_given,
    refuse_too_many_chosen,
)
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import SingleBlock
from weightloom.plugins.layers.cache import make_cache
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Layer, Names
from weightloom.plugins.layers.mamba2 import GateThenNorm, Mamba2Mixer, Mamba2Shape, limits_of
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import Norm, rms_norm
from weightloom.plugins.layers.plain_experts import PlainExperts
from weightloom.plugins.layers.scored_experts import ScoredGate, ScoredSparseMlp
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl

RECURRENT, DENSE, SPARSE = "linear_attention", "mlp", "moe"
KINDS = (RECURRENT, FULL, DENSE, SPARSE)
# What the first files call them.
OLDER = {"mamba": RECURRENT, "attention": FULL}
LETTERS = {"M": RECURRENT, "*": FULL, "-": DENSE, "E": SPARSE}
DEFAULT_PATTERN = "ME*-"


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 131072
    hidden_size: int = 4096
    layers_block_type: tuple[str, ...] | None = None
    hybrid_override_pattern: str | None = None
    tie_word_embeddings: bool = False
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 8
    head_dim: int = 128
    attention_bias: bool = False
    intermediate_size: int = 21504
    mlp_hidden_act: str = "relu2"
    mlp_bias: bool = False
    ssm_state_size: int = 128
    mamba_num_heads: int = 128
    mamba_head_dim: int = 64
    mamba_hidden_act: str = "silu"
    n_groups: int = 8
    conv_kernel: int = 4
    time_step_limit: tuple[float, ...] = (0.0, inf)
    use_conv_bias: bool = True
    use_bias: bool = False
    n_routed_experts: int = 8
    moe_intermediate_size: int = 7688
    moe_shared_expert_intermediate_size: int = 7688
    moe_latent_size: int | None = None
    num_experts_per_tok: int = 2
    routed_scaling_factor: float = 1.0
    n_group: int = 1
    topk_group: int = 1
    norm_topk_prob: bool = True
    layer_norm_epsilon: float = 1e-5

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each layer is; raises ConfigError for a kind that is not known."""
        if self.layers_block_type is not None:
            found = tuple(OLDER.get(each, each) for each in self.layers_block_type)
            unknown = [each for each in found if each not in KINDS]
            refuse_unless(not unknown and bool(found), "layers_block_type", unknown, f"a list of {', '.join(KINDS)}")
            return found
        pattern = DEFAULT_PATTERN if self.hybrid_override_pattern is None else self.hybrid_override_pattern
        fine = bool(pattern) and set(pattern) <= set(LETTERS)
        refuse_unless(fine, "hybrid_override_pattern", pattern, f"a letter a layer, of {', '.join(LETTERS)}")
        return tuple(LETTERS[letter] for letter in pattern)


@dataclass(frozen=True)
class Config:
    """A config that fits together; `kinds` has an entry a layer."""

    fields: Fields
    kinds: tuple[str, ...]
    attention: AttentionShape
    mamba: Mamba2Shape
    act: Activation


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    sizes = ("vocab_size", "hidden_size", "num_attention_heads", "head_dim", "intermediate_size", "layer_norm_epsilon")
    mamba = ("ssm_state_size", "mamba_num_heads", "mamba_head_dim", "n_groups", "conv_kernel")
    refuse_non_positive({name: getattr(fields, name) for name in (*sizes, *mamba)})
    heads, kinds = fields.mamba_num_heads, fields.kinds
    refuse_unless(heads % fields.n_groups == 0, "n_groups", fields.n_groups, f"a divisor of mamba_num_heads, {heads}")
    if SPARSE in kinds:
        _check_experts(fields)
    kv_heads, bias = kv_heads_of(fields.num_key_value_heads, fields.num_attention_heads), fields.attention_bias
    shape = Mamba2Shape(
        fields.hidden_size,
        heads,
        fields.mamba_head_dim,
        fields.ssm_state_size,
        fields.n_groups,
        fields.conv_kernel,
        activation(fields.mamba_hidden_act, "mamba_hidden_act"),
        fields.use_conv_bias,
        fields.use_bias,
        fields.use_bias,
        limits_of(fields.time_step_limit),
    )
    attention = AttentionShape(fields.hidden_size, fields.num_attention_heads, kv_heads, fields.head_dim, bias, bias)
    return Config(fields, kinds, attention, shape, activation(fields.mlp_hidden_act, "mlp_hidden_act"))


def _check_experts(fields: Fields) -> None:
    names = ("n_routed_experts", "moe_intermediate_size", "moe_shared_expert_intermediate_size", "num_experts_per_tok")
    refuse_non_positive({name: getattr(fields, name) for name in (*names, "routed_scaling_factor", "n_group")})
    refuse_non_positive_where_given({"moe_latent_size": fields.moe_latent_size})
    experts, groups, kept = fields.n_routed_experts, fields.n_group, fields.topk_group
    fits = groups == 1 or (experts % groups == 0 and experts // groups > 1)
    refuse_unless(fits, "n_group", groups, f"a divisor of n_routed_experts, {experts}, into 2 at least")
    refuse_unless(0 < kept <= groups, "topk_group", kept, f"a positive number, n_group, {groups}, at most")
    refuse_too_many_chosen(fields.num_experts_per_tok, kept * experts // groups, "what n_routed_experts leave")


class OrderlessAttention(Attention):
    """Attention without position embeddings, as a mixer of a layer of its own."""

    def __init__(self, shape: AttentionShape) -> None:
        super().__init__(shape, None)

    def make_cache(self) -> Any:
        """Give an empty cache."""
        return make_cache(None)


class LatentSparseMlp(ScoredSparseMlp):
    """Experts, of which some work on fewer numbers: `fc1_latent_proj` makes them, `fc2_latent_proj` takes them back."""

    def __init__(self, fields: Fields, act: Activation) -> None:
        size, latent, bias = fields.hidden_size, fields.moe_latent_size, fields.mlp_bias
        count, kept = fields.n_routed_experts, fields.topk_group
        super().__init__(
            PlainExperts(count, latent or size, fields.moe_intermediate_size, act),
            Scoring(
                groups=fields.n_group,
                kept=kept,
                normalise=fields.norm_topk_prob,
                scale=fields.routed_scaling_factor,
            ),
            fields.num_experts_per_tok,
            PlainMlp(size, fields.moe_shared_expert_intermediate_size, act, bias),
        )
        self["gate"] = ScoredGate(count, size, corrected=True)
        if latent is not None:
            self.fc1_latent_proj = nn.Linear(size, latent, bias=bias)
            self.fc2_latent_proj = nn.Linear(latent, size, bias=bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape: what the chosen experts make, weighted, and the shared ones."""
        if "fc1_latent_proj" not in self:
            return super().__call__(x)
        tokens = x.reshape(-1, x.shape[-1])
        mixed = self._mix(self.experts, self.fc1_latent_proj(tokens), *self.choose(tokens)).astype(x.dtype)
        made: mx.array = self.fc2_latent_proj(mixed).reshape(x.shape) + self.shared_experts(x)
        return made


class FeedForwardBlock(nn.Module):
    """A layer that mixes no tokens, after a norm: its cache counts them."""

    window: Window = None

    def __init__(self, mlp: nn.Module, hidden_size: int, norm: Norm) -> None:
        super().__init__()
        self.norm = norm(hidden_size)
        self.mixer = mlp

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        cache.put(x.shape[1])
        added: mx.array = self.mixer(self.norm(x))
        return x + added

    def make_cache(self) -> StateCache:
        """Give an empty cache."""
        return StateCache()


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    norm = rms_norm(fields.layer_norm_epsilon)(fields.hidden_size)
    blocks = [_block(config, kind) for kind in config.kinds]
    names = Names(embedding="embeddings", norm="norm_f")
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm, blocks, names=names)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, kind: str) -> Layer:
    fields, shape = config.fields, config.mamba
    size, norm = fields.hidden_size, rms_norm(fields.layer_norm_epsilon)
    if kind == RECURRENT:
        gated = GateThenNorm(shape.channels, shape.groups, fields.layer_norm_epsilon)
        return SingleBlock(Mamba2Mixer(shape, gated), size, norm)
    if kind == FULL:
        return SingleBlock(OrderlessAttention(config.attention), size, norm)
    if kind == DENSE:
        return FeedForwardBlock(PlainMlp(size, fields.intermediate_size, config.act, fields.mlp_bias), size, norm)
    return FeedForwardBlock(LatentSparseMlp(fields, config.act), size, norm)


NEMOTRON_H = Architecture(
    name="nemotron_h",
    model_types=("nemotron_h",),
    class_names=("NemotronHForCausalLM",),
    task="generate",
    verified="Transformers 5.24 NemotronHForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        r"^(model\.embeddings|lm_head)\.": "vocab",
        r"mixer\.[qkv]_proj\.": "column",
        r"mixer\.o_proj\.(weight|scales|biases)$": "row",
        r"(mixer|shared_experts)\.up_proj\.": "column",
        r"(mixer|shared_experts)\.down_proj\.(weight|scales|biases)$": "row",
        r"\.experts\.up_proj": "column",
        r"\.experts\.down_proj": "row",
    },
)


class Plugin:
    """Offers Nemotron-H."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Nemotron-H."""
        return (NEMOTRON_H,)


PLUGIN = Plugin()
