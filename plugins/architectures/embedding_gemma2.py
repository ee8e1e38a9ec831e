"""EmbeddingGemma 2's text model: an encoder whose tokens see both ways, nearby or all, and its projection.

It is Gemma's block with scores that are not scaled, norms on values too, and a third part: each layer is gated by its
slice of a signal that is made of the embeddings once. Layers that see all have heads and keys of their own sizes. The
projection is part of the model: hidden states have `embedding_dim` numbers; mean pooling and a norm come after it. The
window is a radius. Parameters are named as Transformers 5 names those of EmbeddingGemma2TextModel, which is where all
of this is from. Of the whole (`embedding_gemma2`) this is the text half, whose towers stay aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of, window_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.heads_by_layer import GlobalHeads, heads_of_layer
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.blocks import SandwichBlock
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.masks import Mask, mutual_mask
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.value_norm import ValueNormAttention
from weightloom.plugins.specs import hookimpl

THETAS = {FULL: 1_000_000.0, SLIDING: 10_000.0}


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 262_144
    hidden_size: int = 512
    intermediate_size: int = 2048
    num_hidden_layers: int = 24
    num_attention_heads: int = 4
    num_key_value_heads: int | None = 2
    head_dim: int | None = 256
    hidden_activation: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 262_144
    sliding_window: int | None = 512
    sliding_window_pattern: int | None = 6
    global_head_dim: int = 512
    num_global_key_value_heads: int = 1
    per_layer_config: Mapping[str, Any] | None = None
    hidden_size_per_layer_input: int = 512
    embedding_dim: int = 768


@dataclass(frozen=True)
class LayerConfig:
    """One layer: its heads, how they turn, and what it sees."""

    attention: AttentionShape
    rope: RopeConfig
    window: int | None


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    act: Activation
    layers: tuple[LayerConfig, ...]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    more = ("hidden_size_per_layer_input", "embedding_dim", "global_head_dim", "num_global_key_value_heads")
    fields.check(*more)
    count = fields.num_hidden_layers
    patterned = fields.sliding_window_pattern if fields.layer_types is None else None
    types = layer_types_of(fields.layer_types, count, FULL, patterned)
    # The last layer sees all, whatever is said of it.
    layers = tuple(_layer(fields, content, number, each) for number, each in enumerate((*types[:-1], FULL)))
    return Config(fields, activation(fields.hidden_activation, "hidden_activation"), layers)


def _layer(fields: Fields, content: Mapping[str, Any], number: int, layer_type: str) -> LayerConfig:
    own = GlobalHeads(fields.global_head_dim, fields.num_global_key_value_heads, fields.per_layer_config)
    head_dim, kv_heads = heads_of_layer(fields, own, number, layer_type)
    theta, trained = THETAS[layer_type], fields.max_position_embeddings
    rope = read_rope(content, head_dim, trained, theta, (layer_type,))[layer_type]
    shape = AttentionShape(
        fields.hidden_size,
        fields.num_attention_heads,
        kv_heads,
        head_dim,
        bias=fields.attention_bias,
        out_bias=fields.attention_bias,
        norm_eps=fields.rms_norm_eps,
        scale=1.0,
    )
    radius = window_of(layer_type, fields.sliding_window)
    return LayerConfig(shape, rope, None if radius is None else radius + 1)


class Signals(nn.Module):
    """What gates each layer, made of the embeddings."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self._size = fields.hidden_size_per_layer_input
        self._scale = float(fields.hidden_size**-0.5)
        self.per_layer_model_projection = nn.Linear(
            fields.hidden_size, fields.num_hidden_layers * self._size, bias=False
        )
        self.per_layer_projection_norm = nn.RMSNorm(self._size, fields.rms_norm_eps)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> (B, L, layers, hidden_size_per_layer_input)."""
        made = (self.per_layer_model_projection(x) * self._scale).reshape(*x.shape[:2], -1, self._size)
        normed: mx.array = self.per_layer_projection_norm(made)
        return normed


class Gate(nn.Module):
    """A bottleneck, gated by a layer's signal."""

    def __init__(self, fields: Fields, act: Activation) -> None:
        super().__init__()
        size, narrow = fields.hidden_size, fields.hidden_size_per_layer_input
        self._act = act
        self.per_layer_input_gate = nn.Linear(size, narrow, bias=False)
        self.per_layer_projection = nn.Linear(narrow, size, bias=False)
        self.post_per_layer_input_norm = nn.RMSNorm(size, fields.rms_norm_eps)

    def __call__(self, x: mx.array, signal: mx.array) -> mx.array:
        """(B, L, hidden) and (B, L, hidden_size_per_layer_input) -> (B, L, hidden)."""
        gated = self._act(self.per_layer_input_gate(x)) * signal
        added: mx.array = self.post_per_layer_input_norm(self.per_layer_projection(gated))
        return x + added


class Layer(SandwichBlock):
    """Attention and a feed-forward layer between norms, the gate, and a factor on all."""

    def __init__(self, config: Config, layer: LayerConfig, rope: Rope) -> None:
        fields = config.fields
        attention = ValueNormAttention(layer.attention, rope, fields.rms_norm_eps)
        mlp = GatedMlp(fields.hidden_size, fields.intermediate_size, config.act)
        super().__init__(attention, mlp, fields.hidden_size, rms_norm(fields.rms_norm_eps), layer.window)
        self.ple_block = Gate(fields, config.act)
        self.layer_scalar = mx.ones((1,))

    def gated(self, x: mx.array, signal: mx.array, mask: Mask) -> mx.array:
        """(B, L, hidden) and the layer's signal, under a mask -> (B, L, hidden)."""
        return self.ple_block(self(x, mask, NoCache()), signal) * self.layer_scalar


class Model(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, embedding_dim)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        fields = config.fields
        ropes = {layer.rope: Rope(layer.rope, layer.attention.head_dim) for layer in config.layers}
        self._windows = [layer.window for layer in config.layers]
        self._embed_scale = float(fields.hidden_size**0.5)
        self.embed_tokens = nn.Embedding(fields.vocab_size, fields.hidden_size)
        self.ple = Signals(fields)
        self.layers = [Layer(config, layer, ropes[layer.rope]) for layer in config.layers]
        self.norm = nn.RMSNorm(fields.hidden_size, fields.rms_norm_eps)
        self.embedding_projection = nn.Linear(fields.hidden_size, fields.embedding_dim, bias=False)

    def __call__(self, tokens: mx.array, attention_mask: mx.array | None = None) -> mx.array:
        """See the class."""
        masks = {window: mutual_mask(tokens.shape[1], window, attention_mask) for window in set(self._windows)}
        dtype = self.norm.weight.dtype
        x = self.embed_tokens(tokens).astype(dtype) * mx.array(self._embed_scale, dtype)
        signals = self.ple(x)
        for number, layer in enumerate(self.layers):
            x = layer.gated(x, signals[:, :, number], masks[self._windows[number]])
        made: mx.array = self.embedding_projection(self.norm(x))
        return made


EMBEDDING_GEMMA2 = Architecture(
    name="embedding_gemma2",
    model_types=("embedding_gemma2_text",),
    class_names=("EmbeddingGemma2TextModel",),
    task="embed",
    verified="Transformers 5.24 EmbeddingGemma2TextModel",
    read_config=read_config,
    build=Model,
    fields=Fields,
    adapters=("lora", "dora"),
)


class Plugin:
    """Offers EmbeddingGemma 2's text model."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer EmbeddingGemma 2's text model."""
        return (EMBEDDING_GEMMA2,)


PLUGIN = Plugin()
