"""DistilBERT (arXiv 1910.01108): BERT with half the layers, without segments and pooler, under names of its own.

A table of positions that is made of sines is stored like a learnt one. Parameters are named as Transformers 5 names
those of DistilBertModel and DistilBertForSequenceClassification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.labels import with_labels
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import Activation, activation, relu
from weightloom.plugins.layers.encoder_classifier import EncoderClassifier
from weightloom.plugins.layers.masks import mutual_mask
from weightloom.plugins.layers.row_length import refuse_longer
from weightloom.plugins.specs import hookimpl

EPS = 1e-12


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 30522
    dim: int = 768
    n_layers: int = 6
    n_heads: int = 12
    hidden_dim: int = 3072
    activation: str = "gelu"
    max_position_embeddings: int = 512


@dataclass(frozen=True)
class Config:
    """A config that fits together; `labels` are what a classifier has."""

    fields: Fields
    act: Activation
    labels: tuple[str, ...] = ()


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    sizes = ("vocab_size", "dim", "n_layers", "n_heads", "hidden_dim", "max_position_embeddings")
    refuse_non_positive({name: getattr(fields, name) for name in sizes})
    refuse_unless(fields.dim % fields.n_heads == 0, "n_heads", fields.n_heads, f"a divisor of dim {fields.dim}")
    return Config(fields, activation(fields.activation, "activation"))


class Embeddings(nn.Module):
    """Words and positions, summed and normed."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(fields.vocab_size, fields.dim)
        self.position_embeddings = nn.Embedding(fields.max_position_embeddings, fields.dim)
        self.LayerNorm = nn.LayerNorm(fields.dim, EPS)

    def __call__(self, tokens: mx.array) -> mx.array:
        """Tokens (B, L) int -> (B, L, dim)."""
        x = self.word_embeddings(tokens) + self.position_embeddings(mx.arange(tokens.shape[1]))
        # Packed embeddings may give bfloat16, whatever the layers compute in.
        normed: mx.array = self.LayerNorm(x.astype(self.LayerNorm.weight.dtype))
        return normed


class Attention(nn.Module):
    """Attention over all tokens of a row that the mask allows."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        size = fields.dim
        self._heads = fields.n_heads
        self.q_lin, self.k_lin, self.v_lin, self.out_lin = (nn.Linear(size, size) for _ in range(4))

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, dim) under a mask -> the same shape."""
        made = (self.q_lin(x), self.k_lin(x), self.v_lin(x))
        q, k, v = (each.reshape(*x.shape[:2], self._heads, -1).transpose(0, 2, 1, 3) for each in made)
        mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask)
        out: mx.array = self.out_lin(mixed.transpose(0, 2, 1, 3).flatten(2))
        return out


class FeedForward(nn.Module):
    """Two layers with an activation between them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._act = config.act
        self.lin1 = nn.Linear(config.fields.dim, config.fields.hidden_dim)
        self.lin2 = nn.Linear(config.fields.hidden_dim, config.fields.dim)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, dim) -> the same shape."""
        made: mx.array = self.lin2(self._act(self.lin1(x)))
        return made


class Layer(nn.Module):
    """One block, a norm after each half."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = Attention(config.fields)
        self.sa_layer_norm = nn.LayerNorm(config.fields.dim, EPS)
        self.ffn = FeedForward(config)
        self.output_layer_norm = nn.LayerNorm(config.fields.dim, EPS)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, dim) under a mask -> the same shape."""
        x = self.sa_layer_norm(self.attention(x, mask) + x)
        normed: mx.array = self.output_layer_norm(self.ffn(x) + x)
        return normed


class Transformer(nn.Module):
    """All blocks."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer = [Layer(config) for _ in range(config.fields.n_layers)]

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, dim) under a mask -> the same shape."""
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Model(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, dim)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length = config.fields.max_position_embeddings
        self.embeddings = Embeddings(config.fields)
        self.transformer = Transformer(config)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; segments are not told apart. Raises UsageError for rows that are too long."""
        refuse_longer(tokens, self.max_length)
        return self.transformer(self.embeddings(tokens), mutual_mask(tokens.shape[1], None, attention_mask))


class Classifier(EncoderClassifier):
    """See `EncoderClassifier`: two layers on the first token."""

    def __init__(self, config: Config) -> None:
        super().__init__("distilbert", Model(config))
        size = config.fields.dim
        self.pre_classifier = nn.Linear(size, size)
        self.classifier = nn.Linear(size, len(config.labels))

    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """(B, L, dim) -> (B, labels)."""
        logits: mx.array = self.classifier(relu(self.pre_classifier(hidden[:, 0])))
        return logits


DISTILBERT = Architecture(
    name="distilbert",
    model_types=("distilbert",),
    class_names=("DistilBertModel", "DistilBertForMaskedLM"),
    task="embed",
    verified="Transformers 5.24 DistilBertModel",
    base_model_prefix="distilbert",
    read_config=read_config,
    build=Model,
    fields=Fields,
    rules=without_heads(r"^vocab_", r"^pre_classifier\.", r"^classifier\."),
    adapters=("lora", "dora"),
)
DISTILBERT_CLASSIFIER = scoring(
    DISTILBERT, ("DistilBertForSequenceClassification",), with_labels(read_config), Classifier
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (DISTILBERT, DISTILBERT_CLASSIFIER)


PLUGIN = Plugin()
