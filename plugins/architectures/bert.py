"""BERT (arXiv 1810.04805): hidden states for every token, or, with a classifier on its pooled first token, scores.

Parameters are named as Transformers 5 names those of BertModel and BertForSequenceClassification. A checkpoint of
another head model (names under `bert.`) gives the encoder too, its head left out by a named rule and kept for saving
back; that of a classifier has to be asked for. The encoder's pooler is built when the checkpoint has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.bert_config import BertConfig, pooler_as_stored
from weightloom.plugins.configs.bert_fields import BertFields
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.labels import with_labels
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.bert import BertModel, in_order
from weightloom.plugins.layers.encoder_classifier import EncoderClassifier
from weightloom.plugins.specs import hookimpl

Config: TypeAlias = BertConfig[BertFields]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(BertFields, content)
    fields.check()
    activation(fields.hidden_act)
    return BertConfig(fields)


def build(config: Config) -> BertModel:
    """Make the encoder; its parameters are not computed."""
    return BertModel(config.fields, in_order, 0, config.has_pooler)


class Classifier(EncoderClassifier):
    """See `EncoderClassifier`: a layer on the pooled first token."""

    def __init__(self, config: Config) -> None:
        super().__init__("bert", build(config))
        self.classifier = nn.Linear(config.fields.hidden_size, len(config.labels))

    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """(B, L, hidden) -> (B, labels)."""
        logits: mx.array = self.classifier(self["bert"].pooler(hidden))
        return logits


BERT = Architecture(
    name="bert",
    model_types=("bert",),
    class_names=("BertModel", "BertForMaskedLM", "BertForPreTraining"),
    task="embed",
    verified="Transformers 5.24 BertModel",
    base_model_prefix="bert",
    read_config=read_config,
    adapt=pooler_as_stored,
    build=build,
    fields=BertFields,
    rules=without_heads(r"^cls\.", r"^classifier\."),
    adapters=("lora", "dora"),
)
BERT_CLASSIFIER = scoring(BERT, ("BertForSequenceClassification",), with_labels(read_config), Classifier)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (BERT, BERT_CLASSIFIER)


PLUGIN = Plugin()
