"""ModernBERT (arXiv 2412.13663): an encoder whose layers see all tokens or those nearby, or a classifier made of it.

One layer in `global_attn_every_n_layers`, from the first on, sees all; the others see `local_attention` / 2 tokens to
each side, and turn by a base of their own. The first layer's attention has no norm: the embeddings come normed.
Parameters are named as Transformers 5 names those of ModernBertModel and ModernBertForSequenceClassification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, head_dim_of, layer_types_of, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.labels import with_labels
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.encoder_classifier import EncoderClassifier
from weightloom.plugins.layers.masks import mutual_mask
from weightloom.plugins.layers.norms import Norm, layer_norm
from weightloom.plugins.layers.pooling import mean_of_tokens
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 50368
    hidden_size: int = 768
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    hidden_activation: str = "gelu"
    max_position_embeddings: int = 8192
    norm_eps: float = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    layer_types: tuple[str, ...] | None = None
    global_attn_every_n_layers: int = 3
    local_attention: int = 128
    global_rope_theta: float = 160000.0
    local_rope_theta: float = 10000.0
    classifier_pooling: Literal["cls", "mean"] = "cls"
    classifier_bias: bool = False
    classifier_activation: str = "gelu"


@dataclass(frozen=True)
class Config:
    """A config that fits together: a layer type a layer, a rope a layer type; `labels` are what a classifier has."""

    fields: Fields
    act: Activation
    layer_types: tuple[str, ...]
    ropes: Mapping[str, RopeConfig]
    labels: tuple[str, ...] = ()

    @property
    def window(self) -> int:
        """How far apart tokens are that do not see each other in layers that slide."""
        return self.fields.local_attention // 2 + 1

    @property
    def norm(self) -> Norm:
        """What makes norms."""
        return layer_norm(self.fields.norm_eps, self.fields.norm_bias)


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "norm_eps")
    more = ("max_position_embeddings", "global_attn_every_n_layers", "local_attention")
    refuse_non_positive({name: getattr(fields, name) for name in (*sizes, *more)})
    whole, part = fields.hidden_size, fields.num_attention_heads
    refuse_unless(whole % part == 0, "num_attention_heads", part, f"a divisor of hidden_size {whole}")
    every = fields.global_attn_every_n_layers
    count = fields.num_hidden_layers
    alternating = tuple(SLIDING if layer % every else FULL for layer in range(count))
    types = layer_types_of(fields.layer_types or alternating, count, FULL)
    activation(fields.classifier_activation, "classifier_activation")
    return Config(fields, activation(fields.hidden_activation, "hidden_activation"), types, _ropes(content, fields))


def _ropes(content: Mapping[str, Any], fields: Fields) -> dict[str, RopeConfig]:
    bases = {FULL: "global_rope_theta", SLIDING: "local_rope_theta"}
    for name in bases.values():
        base = getattr(fields, name)
        refuse_unless(1 < base < 1e18, name, base, "more than 1, of ordinary size")
    head_dim = head_dim_of(None, fields.hidden_size, fields.num_attention_heads)
    trained = fields.max_position_embeddings
    found: dict[str, RopeConfig] = {}
    for layer_type, name in bases.items():
        found |= read_rope(content, head_dim, trained, getattr(fields, name), (layer_type,))
    return found


class Embeddings(nn.Module):
    """Words alone, normed."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(config.fields.vocab_size, config.fields.hidden_size)
        self.norm = config.norm(config.fields.hidden_size)

    def __call__(self, tokens: mx.array) -> mx.array:
        """Tokens (B, L) int -> (B, L, hidden)."""
        # A packed embedding may give bfloat16, whatever the layers compute in.
        normed: mx.array = self.norm(self.tok_embeddings(tokens).astype(self.norm["weight"].dtype))
        return normed


class Attention(nn.Module):
    """Attention among the tokens that the mask allows; queries, keys and values are made by one matrix, `Wqkv`."""

    def __init__(self, fields: Fields, rope: Rope) -> None:
        super().__init__()
        size = fields.hidden_size
        self._heads = fields.num_attention_heads
        self._rope = rope
        self.Wqkv = nn.Linear(size, 3 * size, bias=fields.attention_bias)
        self.Wo = nn.Linear(size, size, bias=fields.attention_bias)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        rows, length, _ = x.shape
        joined = self.Wqkv(x).reshape(rows, length, 3, self._heads, -1).transpose(2, 0, 3, 1, 4)
        queries, keys, values = self._rope(joined[0], 0), self._rope(joined[1], 0), joined[2]
        mixed = attend(queries, keys, values, values.shape[-1] ** -0.5, mask)
        made: mx.array = self.Wo(mixed.transpose(0, 2, 1, 3).flatten(2))
        return made


class Mlp(nn.Module):
    """A gated feed-forward layer whose first matrix makes what is activated, then the gate."""

    def __init__(self, fields: Fields, act: Activation) -> None:
        super().__init__()
        self._act = act
        self.Wi = nn.Linear(fields.hidden_size, 2 * fields.intermediate_size, bias=fields.mlp_bias)
        self.Wo = nn.Linear(fields.intermediate_size, fields.hidden_size, bias=fields.mlp_bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> the same shape."""
        inner, gate = mx.split(self.Wi(x), 2, axis=-1)
        made: mx.array = self.Wo(self._act(inner) * gate)
        return made


class Layer(nn.Module):
    """One block; `window` None: it sees all tokens."""

    def __init__(self, config: Config, rope: Rope, window: int | None, first: bool) -> None:
        super().__init__()
        size = config.fields.hidden_size
        self.window = window
        self.attn_norm = nn.Identity() if first else config.norm(size)
        self.attn = Attention(config.fields, rope)
        self.mlp_norm = config.norm(size)
        self.mlp = Mlp(config.fields, config.act)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        x = x + self.attn(self.attn_norm(x), mask)
        added: mx.array = self.mlp(self.mlp_norm(x))
        return x + added


class Model(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, hidden)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        fields, types = config.fields, config.layer_types
        head_dim = fields.hidden_size // fields.num_attention_heads
        ropes = {name: Rope(rope, head_dim) for name, rope in config.ropes.items()}
        self.embeddings = Embeddings(config)
        self.layers = [
            Layer(config, ropes[each], None if each == FULL else config.window, first=number == 0)
            for number, each in enumerate(types)
        ]
        self.final_norm = config.norm(fields.hidden_size)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; segments are not told apart."""
        windows = {layer.window for layer in self.layers}
        masks = {window: mutual_mask(tokens.shape[1], window, attention_mask) for window in windows}
        x = self.embeddings(tokens)
        for layer in self.layers:
            x = layer(x, masks[layer.window])
        normed: mx.array = self.final_norm(x)
        return normed


class PredictionHead(nn.Module):
    """What a pooled state goes through before it is classified."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        size = config.fields.hidden_size
        self._act = activation(config.fields.classifier_activation, "classifier_activation")
        self.dense = nn.Linear(size, size, bias=config.fields.classifier_bias)
        self.norm = config.norm(size)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, hidden) -> the same shape."""
        normed: mx.array = self.norm(self._act(self.dense(x)))
        return normed


class Classifier(EncoderClassifier):
    """See `EncoderClassifier`: a layer on the first token, or on the mean of all, after a head."""

    def __init__(self, config: Config) -> None:
        super().__init__("model", Model(config))
        self._mean = config.fields.classifier_pooling == "mean"
        self.head = PredictionHead(config)
        self.classifier = nn.Linear(config.fields.hidden_size, len(config.labels))

    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """(B, L, hidden) -> (B, labels)."""
        pooled = mean_of_tokens(hidden, attention_mask) if self._mean else hidden[:, 0]
        logits: mx.array = self.classifier(self.head(pooled))
        return logits


MODERNBERT = Architecture(
    name="modernbert",
    model_types=("modernbert",),
    class_names=("ModernBertModel", "ModernBertForMaskedLM"),
    task="embed",
    verified="Transformers 5.24 ModernBertModel",
    read_config=read_config,
    build=Model,
    fields=Fields,
    rules=without_heads(r"^head\.", r"^decoder\.", r"^classifier\."),
    adapters=("lora", "dora"),
)
MODERNBERT_CLASSIFIER = scoring(
    MODERNBERT, ("ModernBertForSequenceClassification",), with_labels(read_config), Classifier
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (MODERNBERT, MODERNBERT_CLASSIFIER)


PLUGIN = Plugin()
