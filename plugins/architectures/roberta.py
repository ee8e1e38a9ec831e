"""RoBERTa (arXiv 1907.11692), XLM-RoBERTa (1911.02116) and CamemBERT (1911.03894): hidden states, or scores of texts.

They are BERT with positions that count from the id of padding on, and one architecture with other vocabularies.
Parameters are named as Transformers 5 names those of RobertaModel and RobertaForSequenceClassification, whose
classifier has two layers of its own and no pooler. A checkpoint of another head model gives the encoder too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.bert_config import BertConfig, pooler_as_stored
from weightloom.plugins.configs.bert_fields import BertFields
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.labels import with_labels
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.bert import BertModel, ClassificationHead, after_padding_id
from weightloom.plugins.layers.encoder_classifier import EncoderClassifier
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(BertFields):
    """What config.json says; the id of padding is the last of the position table's rows that no text has."""

    pad_token_id: int = 1


Config: TypeAlias = BertConfig[Fields]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read the encoder's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    activation(fields.hidden_act)
    last = fields.max_position_embeddings - 2
    refuse_unless(0 <= fields.pad_token_id <= last, "pad_token_id", fields.pad_token_id, f"from 0 to {last}, so that "
        "max_position_embeddings leaves room for a text")  # fmt: skip
    return BertConfig(fields)


def build(config: Config) -> BertModel:
    """Make the encoder; its parameters are not computed."""
    padding_id = config.fields.pad_token_id
    return BertModel(config.fields, after_padding_id(padding_id), padding_id + 1, config.has_pooler)


class Classifier(EncoderClassifier):
    """See `EncoderClassifier`: two layers on the first token."""

    def __init__(self, config: Config) -> None:
        super().__init__("roberta", build(config))
        self.classifier = ClassificationHead(config.fields.hidden_size, len(config.labels))

    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """(B, L, hidden) -> (B, labels)."""
        return self.classifier(hidden)


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
    adapt=pooler_as_stored,
    build=build,
    fields=Fields,
    rules=without_heads(r"^lm_head\.", r"^classifier\."),
    adapters=("lora", "dora"),
)
ROBERTA_CLASSIFIER = scoring(ROBERTA, CLASSIFIERS, with_labels(read_config, has_pooler=False), Classifier)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer the encoder and the classifier."""
        return (ROBERTA, ROBERTA_CLASSIFIER)


PLUGIN = Plugin()
