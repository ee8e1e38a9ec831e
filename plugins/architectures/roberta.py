"""RoBERTa (arXiv 1907.11692), XLM-RoBERTa (1911.02116) and CamemBERT (1911.03894): hidden states, or scores of texts.

They are BERT with positions that count from the id of padding on, and one architecture with other vocabularies.
Parameters are named as Transformers 5 names those of RobertaModel and RobertaForSequenceClassification, whose
classifier has two layers of its own and no pooler. A checkpoint of another head model gives the encoder too.
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
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.labels import label_names
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.bert import BertModel, ClassificationHead, after_padding_id
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(BertFields):
    """What config.json says; the id of padding is the last of the position table's rows that no text has."""

    pad_token_id: int = 1


@dataclass(frozen=True)
class Config:
    """A config that fits together; whether there is a pooler is what the files say, `labels` what a classifier has."""

    fields: Fields
    labels: tuple[str, ...] = ()
    has_pooler: bool = True


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    activation(fields.hidden_act)
    last = fields.max_position_embeddings - 2
    refuse_unless(0 <= fields.pad_token_id <= last, "pad_token_id", fields.pad_token_id, f"from 0 to {last}, so that "
        "max_position_embeddings leaves room for a text")  # fmt: skip
    return Config(fields)


def read_classifier(content: Mapping[str, Any]) -> Config:
    """Read a classifier's config.json; raises ConfigError naming the field that is off."""
    return replace(read_config(content), labels=label_names(content), has_pooler=False)


def build(config: Config) -> BertModel:
    """Make the encoder; its parameters are not computed."""
    padding_id = config.fields.pad_token_id
    return BertModel(config.fields, after_padding_id(padding_id), padding_id + 1, config.has_pooler)


def adapt(config: Config, names: Collection[str]) -> Config:
    """Build the pooler only where the checkpoint has one."""
    return replace(config, has_pooler=any(name.endswith("pooler.dense.weight") for name in names))


class Classifier(nn.Module):
    """`model(tokens, attention_mask, token_type_ids)`, each (B, L) int32 -> logits (B, labels)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.roberta = build(config)
        self.classifier = ClassificationHead(config.fields.hidden_size, len(config.labels))

    @property
    def max_length(self) -> int:
        """How many tokens a row may have."""
        return self.roberta.max_length

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; raises UsageError for rows that are too long."""
        return self.classifier(self.roberta(tokens, attention_mask, token_type_ids))


MODEL_TYPES = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"}
ENCODERS = tuple(f"{name}Model" for name in MODEL_TYPES.values())
CLASSIFIERS = tuple(f"{name}ForSequenceClassification" for name in MODEL_TYPES.values())

ROBERTA = Architecture(
    name="roberta",
    model_types=tuple(MODEL_TYPES),
    class_names=(*ENCODERS, *(f"{name}ForMaskedLM" for name in MODEL_TYPES.values())),
    task="embed",
    verified=f"Transformers 5.24 {', '.join(ENCODERS)}",
    base_model_prefix="roberta",
    read_config=read_config,
    adapt=adapt,
    build=build,
    fields=Fields,
    rules=RuleSet([Drop([r"^lm_head\.", r"^classifier\."], why="a head, which an encoder does not use")]),
    adapters=("lora", "dora"),
)
ROBERTA_CLASSIFIER = Architecture(
    name="roberta_classifier",
    model_types=tuple(MODEL_TYPES),
    class_names=CLASSIFIERS,
    task="rerank",
    verified=f"Transformers 5.24 {', '.join(CLASSIFIERS)}",
    base_model_prefix="roberta",
    read_config=read_classifier,
    build=Classifier,
    fields=Fields,
    adapters=("lora", "dora"),
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (ROBERTA, ROBERTA_CLASSIFIER)


PLUGIN = Plugin()
