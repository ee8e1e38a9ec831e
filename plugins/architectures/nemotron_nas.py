"""Nemotron NAS (arXiv 2411.19146): Llama's layers, each cut to size: fewer heads, narrower feed-forward layers, less.

`block_configs` says of each layer how many heads of queries share one of keys, and how wide the feed-forward layer is;
or that there is none of the two, nor its norm, or one matrix in its place.
Transformers has no class for it: parameters are named as in the published model. mlx-lm calls the matrices that replace
others `linear`; published are `linear_attn` and `linear_mlp`, which it does not find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, WIDEST
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import Attention
from weightloom.plugins.layers.cache import make_cache
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.dense import DenseConfig
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl

_WIDTHS = 256


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. The width that counts is a layer's own."""

    block_configs: tuple[Mapping[str, Any], ...]
    intermediate_size: int = 1
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072


@dataclass(frozen=True, kw_only=True)
class Part:
    """What `block_configs` says of attention or of a feed-forward layer; the last three must not be in use."""

    no_op: bool = False
    replace_with_linear: bool = False
    n_heads_in_group: int | None = None
    ffn_mult: float | None = None
    window_length: int | None = None
    num_sink_tokens: int | None = None
    sparsify: Any = None

    @property
    def plain(self) -> bool:
        """Whether it is there as Llama has it."""
        return not (self.no_op or self.replace_with_linear)


@dataclass(frozen=True)
class Config:
    """A config that fits together; `layers` has attention and feed-forward layer of each."""

    dense: DenseConfig
    layers: tuple[tuple[Part, Part], ...]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    # One width for all says nothing; published configs have null.
    fields = read(Fields, {name: value for name, value in content.items() if name != "intermediate_size"})
    fields.check()
    count, blocks = fields.num_hidden_layers, fields.block_configs
    refuse_unless(
        len(blocks) == count, "block_configs", f"a list of {len(blocks)}", f"num_hidden_layers, {count}, entries"
    )
    layers = tuple(_layer(number, block, fields) for number, block in enumerate(blocks))
    # Heads of keys are a layer's own: the field says nothing of them, and published configs have null.
    dense = DenseConfig.of(replace(fields, num_key_value_heads=None), content, (FULL,) * count, default_theta=500000.0)
    return Config(dense, layers)


def _layer(number: int, block: Mapping[str, Any], fields: Fields) -> tuple[Part, Part]:
    attention, ffn = _part(block, number, "attention"), _part(block, number, "ffn")
    shared, heads = attention.n_heads_in_group, fields.num_attention_heads
    fits = not attention.plain or (shared is not None and shared > 0 and heads % shared == 0)
    name = f"block_configs[{number}]"
    refuse_unless(fits, f"{name}.attention.n_heads_in_group", shared, f"a divisor of num_attention_heads, {heads}")
    fits = not ffn.plain or (ffn.ffn_mult is not None and 0 < ffn.ffn_mult * fields.hidden_size <= WIDEST)
    refuse_unless(fits, f"{name}.ffn.ffn_mult", ffn.ffn_mult, f"a positive number, and {WIDEST} wide at most")
    return attention, ffn


def _part(block: Mapping[str, Any], number: int, name: str) -> Part:
    place, said = f"block_configs[{number}].{name}", block.get(name)
    refuse_unless(isinstance(said, Mapping), place, said, "an object")
    assert isinstance(said, Mapping)
    part = read(Part, said)
    for field in ("window_length", "num_sink_tokens", "sparsify"):
        refuse_unless(not getattr(part, field), f"{place}.{field}", getattr(part, field), "null: none is published")
    return part


class Replacement(nn.Module):
    """One matrix, called `name`, in the place of attention or of a feed-forward layer."""

    def __init__(self, hidden_size: int, name: str) -> None:
        super().__init__()
        self._name = name
        self[name] = nn.Linear(hidden_size, hidden_size, bias=False)

    def __call__(self, x: mx.array, *_: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        made: mx.array = self[self._name](x)
        return made


class NasBlock(nn.Module):
    """Attention, then a feed-forward layer, each after a norm; or another in their place, or none and no norm."""

    window: Window = None

    def __init__(self, config: Config, layer: int, rope: Rope) -> None:
        super().__init__()
        fields, norm = config.dense.fields, rms_norm(config.dense.fields.rms_norm_eps)
        attention, ffn = config.layers[layer]
        self._mixes = attention.plain
        if not attention.no_op:
            self.input_layernorm = norm(fields.hidden_size)
            self.self_attn = _attention(config, attention, rope)
        if not ffn.no_op:
            self.post_attention_layernorm = norm(fields.hidden_size)
            self.mlp = _mlp(config, ffn)

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        if not self._mixes:
            # A layer that keeps no keys counts the tokens all the same.
            cache.put(x.shape[1])
        if "self_attn" in self:
            x = x + self.self_attn(self.input_layernorm(x), mask, cache)
        if "mlp" in self:
            x = x + self.mlp(self.post_attention_layernorm(x))
        return x

    def make_cache(self) -> Any:
        """Give an empty cache."""
        return make_cache(self.window) if self._mixes else StateCache()


def _attention(config: Config, part: Part, rope: Rope) -> nn.Module:
    if part.replace_with_linear:
        return Replacement(config.dense.fields.hidden_size, "linear_attn")
    assert part.n_heads_in_group is not None
    shape = config.dense.attention
    return Attention(replace(shape, kv_heads=shape.heads // part.n_heads_in_group), rope)


def _mlp(config: Config, part: Part) -> nn.Module:
    fields = config.dense.fields
    if part.replace_with_linear:
        return Replacement(fields.hidden_size, "linear_mlp")
    assert part.ffn_mult is not None
    width = ceil(int(2 * part.ffn_mult * fields.hidden_size / 3) / _WIDTHS) * _WIDTHS
    return GatedMlp(fields.hidden_size, width, config.dense.act, fields.mlp_bias)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, dense = config.dense.fields, config.dense
    rope = Rope(dense.ropes[FULL], dense.attention.head_dim)
    blocks = [NasBlock(config, layer, rope) for layer in range(fields.num_hidden_layers)]
    norm = rms_norm(fields.rms_norm_eps)(fields.hidden_size)
    return CausalLM(Decoder(fields.vocab_size, fields.hidden_size, norm, blocks), fields.tie_word_embeddings)


NEMOTRON_NAS = Architecture(
    name="nemotron_nas",
    model_types=("nemotron-nas",),
    class_names=("DeciLMForCausalLM",),
    task="generate",
    verified="mlx-lm 0.32.2 nemotron-nas",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers Nemotron NAS."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Nemotron NAS."""
        return (NEMOTRON_NAS,)


PLUGIN = Plugin()
