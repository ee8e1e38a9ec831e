"""BERT (arXiv 1810.04805): hidden states for every token, or, with a classifier on its pooled first token, scores.

Parameters are named as Transformers 5 names those of BertModel and BertForSequenceClassification. A checkpoint of
another head model (names under `bert.`) gives the encoder too, its head left out by a named rule and kept for saving
back; that of a classifier has to be asked for. The encoder's pooler is built when the checkpoint has one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine import Drop, RuleSet
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.bert_fields import BertFields
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.labels import label_names
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.bert import BertModel, in_order
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True)
class Config:
    """A config that fits together; whether there is a pooler is what the files say, `labels` what a classifier has."""

    fields: BertFields
    labels: tuple[str, ...] = ()
    has_pooler: bool = True


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(BertFields, content)
    fields.check()
    activation(fields.hidden_act)
    return Config(fields)


def read_classifier(content: Mapping[str, Any]) -> Config:
    """Read a classifier's config.json; raises ConfigError naming the field that is off."""
    return replace(read_config(content), labels=label_names(content))


def build(config: Config) -> BertModel:
    """Make the encoder; its parameters are not computed."""
    return BertModel(config.fields, in_order, 0, config.has_pooler)


def adapt(config: Config, names: Collection[str]) -> Config:
    """Build the pooler only where the checkpoint has one."""
    return replace(config, has_pooler=any(name.endswith("pooler.dense.weight") for name in names))


class Classifier(nn.Module):
    """`model(tokens, attention_mask, token_type_ids)`, each (B, L) int32 -> logits (B, labels)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.bert = build(config)
        self.classifier = nn.Linear(config.fields.hidden_size, len(config.labels))

    @property
    def max_length(self) -> int:
        """How many tokens a row may have."""
        return self.bert.max_length

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; raises UsageError for rows that are too long."""
        hidden = self.bert(tokens, attention_mask, token_type_ids)
        logits: mx.array = self.classifier(self.bert.pooler(hidden))
        return logits


BERT = Architecture(
    name="bert",
    model_types=("bert",),
    class_names=("BertModel", "BertForMaskedLM", "BertForPreTraining"),
    task="embed",
    verified="Transformers 5.24 BertModel",
    base_model_prefix="bert",
    read_config=read_config,
    adapt=adapt,
    build=build,
    fields=BertFields,
    rules=RuleSet([Drop([r"^cls\.", r"^classifier\."], why="a head, which an encoder does not use")]),
    adapters=("lora", "dora"),
)
BERT_CLASSIFIER = Architecture(
    name="bert_classifier",
    model_types=("bert",),
    class_names=("BertForSequenceClassification",),
    task="rerank",
    verified="Transformers 5.24 BertForSequenceClassification",
    base_model_prefix="bert",
    read_config=read_classifier,
    build=Classifier,
    fields=BertFields,
    adapters=("lora", "dora"),
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (BERT, BERT_CLASSIFIER)


PLUGIN = Plugin()
