"""BERT with a classifier on its pooled first token: scores for a text, or for how well two texts go together.

Parameter names are those of `BertForSequenceClassification`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.architectures import bert
from weightloom.plugins.configs.labels import label_names


@dataclass(frozen=True)
class Config:
    """The encoder's config, and the names of the labels, in the order of the scores."""

    encoder: bert.Config
    labels: tuple[str, ...]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read and check config.json's content; raises ConfigError."""
    return Config(bert.read_config(content), label_names(content))


class Model(nn.Module):
    """`model(tokens, attention_mask, token_type_ids)`, each (B, L) int32 -> logits (B, labels)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length = config.encoder.max_position_embeddings
        self.bert = bert.Model(config.encoder)
        self.classifier = nn.Linear(config.encoder.hidden_size, len(config.labels))

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; raises UsageError for rows that are too long."""
        hidden = self.bert(tokens, attention_mask, token_type_ids)
        logits: mx.array = self.classifier(self.bert.pooler(hidden))
        return logits


BERT_CLASSIFIER = Architecture(
    name="bert_classifier",
    model_types=("bert",),
    class_names=("BertForSequenceClassification",),
    task="rerank",
    base_model_prefix="bert",
    read_config=read_config,
    build=Model,
    fields=bert.Config,
    adapters=("lora", "dora"),
)
