"""EuroBERT (arXiv 2503.05500): a Llama whose tokens see both ways, as an encoder, or with a classifier.

The classifier scores the first token, the mean of all tokens, or each token, of whose scores it takes the mean.
Parameters are named as Transformers 5 names those of EuroBertModel and EuroBertForSequenceClassification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.labels import label_names
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import gelu
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.embedder import Embedder, both_ways
from weightloom.plugins.layers.pooling import mean_of_tokens
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 128256
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 8192
    classifier_pooling: Literal["bos", "mean", "late"] = "late"


@dataclass(frozen=True)
class Config:
    """A config that fits together; `labels` are what a classifier has."""

    fields: Fields
    dense: DenseConfig
    labels: tuple[str, ...]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    dense = DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers)
    return Config(fields, dense, label_names(content))


def build(config: Config) -> Embedder:
    """Make the encoder; its parameters are not computed."""
    return Embedder(build_dense(config.dense).decoder, both_ways)


class Classifier(Embedder):
    """`model(tokens, attention_mask)`, each (B, L) int32 -> logits (B, labels); segments are not told apart."""

    def __init__(self, config: Config) -> None:
        super().__init__(build_dense(config.dense).decoder, both_ways)
        size = config.fields.hidden_size
        self._pooling = config.fields.classifier_pooling
        self.dense = nn.Linear(size, size)
        self.classifier = nn.Linear(size, len(config.labels))

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class."""
        hidden = super().__call__(tokens, attention_mask)
        if self._pooling == "late":
            return mean_of_tokens(self.scores(hidden), attention_mask)
        pooled = hidden[:, 0] if self._pooling == "bos" else mean_of_tokens(hidden, attention_mask)
        return self.scores(pooled)

    def scores(self, hidden: mx.array) -> mx.array:
        """(..., hidden_size) -> (..., labels)."""
        made: mx.array = self.classifier(gelu(self.dense(hidden)))
        return made


EUROBERT = Architecture(
    name="eurobert",
    model_types=("eurobert",),
    class_names=("EuroBertModel", "EuroBertForMaskedLM"),
    task="embed",
    verified="Transformers 5.24 EuroBertModel",
    read_config=read_config,
    build=build,
    fields=Fields,
    rules=without_heads(r"^lm_head\.", r"^dense\.", r"^classifier\."),
    adapters=("lora", "dora"),
)
EUROBERT_CLASSIFIER = scoring(EUROBERT, ("EuroBertForSequenceClassification",), read_config, Classifier)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (EUROBERT, EUROBERT_CLASSIFIER)


PLUGIN = Plugin()
