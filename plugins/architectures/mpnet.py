"""MPNet (arXiv 2004.09297): BERT whose scores of attention have a bias by distance as well, for embedding and scoring.

Distances fall into 32 buckets, half of them for keys that come later: the first of each half are of one distance each,
the others grow with its logarithm up to 128. One table of biases serves all layers. Positions count from the id of
padding on, as RoBERTa's do, which is always 1. Parameters are named as Transformers 5 names those of MPNetModel and
MPNetForSequenceClassification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any, Literal, TypeAlias

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine import Drop, RuleSet
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.bert_config import BertConfig, pooler_as_stored
from weightloom.plugins.configs.bert_fields import BertFields
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.labels import with_labels
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.bert import ClassificationHead, Intermediate, Output, Pooler, after_padding_id
from weightloom.plugins.layers.encoder_classifier import EncoderClassifier
from weightloom.plugins.layers.masks import mutual_mask
from weightloom.plugins.layers.row_length import refuse_longer
from weightloom.plugins.specs import hookimpl

PADDING_ID = 1
BUCKETS, FARTHEST = 32, 128


@dataclass(frozen=True, kw_only=True)
class Fields(BertFields):
    """What config.json says; there are no segments, and the buckets are always as many."""

    relative_attention_num_buckets: Literal[32] = 32


Config: TypeAlias = BertConfig[Fields]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    activation(fields.hidden_act)
    rows = fields.max_position_embeddings
    refuse_unless(rows > PADDING_ID + 1, "max_position_embeddings", rows, f"more than {PADDING_ID + 1}")
    return BertConfig(fields)


def buckets(length: int) -> mx.array:
    """Give the bucket of each pair of a query and a key, (length, length) int32."""
    distance = mx.arange(length)[None, :] - mx.arange(length)[:, None]
    half, far = BUCKETS // 2, mx.abs(distance)
    single = half // 2
    steps = mx.log(mx.maximum(far, 1).astype(mx.float32) / single) / log(FARTHEST / single) * (half - single)
    grown = mx.minimum(single + steps.astype(mx.int32), half - 1)
    return mx.where(far < single, far, grown) + mx.where(distance > 0, half, 0)


class Embeddings(nn.Module):
    """Words and positions, summed and normed."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        size = fields.hidden_size
        self._positions = after_padding_id(PADDING_ID)
        self.word_embeddings = nn.Embedding(fields.vocab_size, size)
        self.position_embeddings = nn.Embedding(fields.max_position_embeddings, size)
        self.LayerNorm = nn.LayerNorm(size, eps=fields.layer_norm_eps)

    def __call__(self, tokens: mx.array) -> mx.array:
        """Tokens (B, L) int -> (B, L, hidden)."""
        x = self.word_embeddings(tokens) + self.position_embeddings(self._positions(tokens))
        # Packed embeddings may give bfloat16, whatever the layers compute in.
        normed: mx.array = self.LayerNorm(x.astype(self.LayerNorm.weight.dtype))
        return normed


class SelfAttention(nn.Module):
    """Attention whose scores have `bias` added."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        size = fields.hidden_size
        self._heads = fields.num_attention_heads
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))

    def __call__(self, x: mx.array, bias: mx.array) -> mx.array:
        """(B, L, hidden) and a bias that goes with (B, heads, L, L) -> (B, L, hidden)."""
        q, k, v = (
            each(x).reshape(*x.shape[:2], self._heads, -1).transpose(0, 2, 1, 3) for each in (self.q, self.k, self.v)
        )
        mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=bias)
        made: mx.array = self.o(mixed.transpose(0, 2, 1, 3).flatten(2))
        return made


class Attention(nn.Module):
    """Self-attention, the residual, and the norm after both."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self.attn = SelfAttention(fields)
        self.LayerNorm = nn.LayerNorm(fields.hidden_size, eps=fields.layer_norm_eps)

    def __call__(self, x: mx.array, bias: mx.array) -> mx.array:
        """(B, L, hidden) and a bias -> the same shape."""
        normed: mx.array = self.LayerNorm(self.attn(x, bias) + x)
        return normed


class Layer(nn.Module):
    """One block."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self.attention = Attention(fields)
        self.intermediate = Intermediate(fields)
        self.output = Output(fields.intermediate_size, fields)

    def __call__(self, x: mx.array, bias: mx.array) -> mx.array:
        """(B, L, hidden) and a bias -> the same shape."""
        x = self.attention(x, bias)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    """All blocks, and the biases of distances, a row a bucket and a column a head."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self.layer = [Layer(fields) for _ in range(fields.num_hidden_layers)]
        self.relative_attention_bias = nn.Embedding(BUCKETS, fields.num_attention_heads)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        bias = self.relative_attention_bias(buckets(x.shape[1])).transpose(2, 0, 1)[None].astype(x.dtype)
        if mask is not None:
            bias = mx.where(mask, bias, mx.array(-float("inf"), x.dtype))
        for layer in self.layer:
            x = layer(x, bias)
        return x


class Model(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, hidden)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length = config.fields.max_position_embeddings - PADDING_ID - 1
        self.embeddings = Embeddings(config.fields)
        self.encoder = Encoder(config.fields)
        if config.has_pooler:
            self.pooler = Pooler(config.fields.hidden_size)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; segments are not told apart. Raises UsageError for rows that are too long."""
        refuse_longer(tokens, self.max_length)
        return self.encoder(self.embeddings(tokens), mutual_mask(tokens.shape[1], None, attention_mask))


class Classifier(EncoderClassifier):
    """See `EncoderClassifier`: two layers on the first token."""

    def __init__(self, config: Config) -> None:
        super().__init__("mpnet", Model(config))
        self.classifier = ClassificationHead(config.fields.hidden_size, len(config.labels))

    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """(B, L, hidden) -> (B, labels)."""
        return self.classifier(hidden)


NUMBERS = RuleSet([Drop([r"embeddings\.position_ids"], why="the numbers 0, 1, 2, ..., which older files have")])

MPNET = Architecture(
    name="mpnet",
    model_types=("mpnet",),
    class_names=("MPNetModel", "MPNetForMaskedLM"),
    task="embed",
    verified="Transformers 5.24 MPNetModel",
    base_model_prefix="mpnet",
    read_config=read_config,
    adapt=pooler_as_stored,
    build=Model,
    fields=Fields,
    rules=NUMBERS + without_heads(r"^lm_head\.", r"^classifier\."),
    adapters=("lora", "dora"),
)
MPNET_CLASSIFIER = scoring(
    MPNET,
    ("MPNetForSequenceClassification",),
    with_labels(read_config, has_pooler=False),
    Classifier,
    NUMBERS,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (MPNET, MPNET_CLASSIFIER)


PLUGIN = Plugin()
