"""BERT with turned queries and keys and a gated feed-forward layer: Nomic BERT (arXiv 2402.01613), GTE (2407.19669).

They are one architecture with two sets of defaults: GTE has biases in attention and after the gate, and may have no
segments. Parameters are named as Transformers 5 names those of NomicBertModel, GteModel and their classifiers; the
files that Nomic first published call fields as GPT-2 does, and say of the activation that it gates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.bert_config import pooler_as_stored
from weightloom.plugins.configs.checks import head_dim_of, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.labels import with_labels
from weightloom.plugins.configs.names import also_named
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.encoders import scoring, without_heads
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.bert import Pooler
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.encoder_classifier import EncoderClassifier
from weightloom.plugins.layers.masks import mutual_mask
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import Norm, layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl

NAMES = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
    "activation_function": "hidden_act",
}
_GATED = {"swiglu": "silu", "geglu": "gelu"}


@dataclass(frozen=True, kw_only=True)
class NomicFields:
    """What Nomic BERT's config.json says; defaults are the published ones."""

    vocab_size: int = 30528
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12


@dataclass(frozen=True, kw_only=True)
class GteFields(NomicFields):
    """What GTE's config.json says; defaults are the published ones."""

    vocab_size: int = 250048
    hidden_act: str = "gelu"
    max_position_embeddings: int = 8192
    type_vocab_size: int = 1


@dataclass(frozen=True)
class Config:
    """A config that fits together; whether there is a pooler is what the files say, `labels` what a classifier has."""

    fields: NomicFields
    attention: AttentionShape
    rope: RopeConfig
    act: Activation
    labels: tuple[str, ...] = ()
    has_pooler: bool = False

    @property
    def norm(self) -> Norm:
        """What makes norms."""
        return layer_norm(self.fields.layer_norm_eps)


def read_nomic(content: Mapping[str, Any]) -> Config:
    """Read Nomic BERT's config.json; raises ConfigError naming the field that is off."""
    fields = read(NomicFields, content)
    refuse_non_positive({"type_vocab_size": fields.type_vocab_size})
    return _checked(replace(fields, hidden_act=_GATED.get(fields.hidden_act, fields.hidden_act)), content, 1000.0)


def read_gte(content: Mapping[str, Any]) -> Config:
    """Read GTE's config.json; raises ConfigError naming the field that is off."""
    fields = read(GteFields, content)
    refuse_unless(
        0 <= fields.type_vocab_size < 2**31, "type_vocab_size", fields.type_vocab_size, "a number of segments"
    )
    return _checked(fields, content, 160000.0, bias=True, out_bias=True)


def _checked(fields: NomicFields, content: Mapping[str, Any], theta: float, **biases: bool) -> Config:
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    more = ("max_position_embeddings", "layer_norm_eps")
    refuse_non_positive({name: getattr(fields, name) for name in (*sizes, *more)})
    heads = fields.num_attention_heads
    head_dim = head_dim_of(fields.head_dim, fields.hidden_size, heads)
    (rope,) = read_rope(content, head_dim, fields.max_position_embeddings, theta).values()
    shape = AttentionShape(fields.hidden_size, heads, heads, head_dim, **biases)
    return Config(fields, shape, rope, activation(fields.hidden_act))


class Embeddings(nn.Module):
    """Words and segments, if any, summed and normed; positions come in attention."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        fields = config.fields
        self.word_embeddings = nn.Embedding(fields.vocab_size, fields.hidden_size)
        if fields.type_vocab_size:
            self.token_type_embeddings = nn.Embedding(fields.type_vocab_size, fields.hidden_size)
        self.LayerNorm = config.norm(fields.hidden_size)

    def __call__(self, tokens: mx.array, segments: mx.array | None) -> mx.array:
        """Tokens and segments (B, L) int -> (B, L, hidden)."""
        x = self.word_embeddings(tokens)
        if "token_type_embeddings" in self:
            x = x + self.token_type_embeddings(mx.zeros_like(tokens) if segments is None else segments)
        # Packed embeddings may give bfloat16, whatever the layers compute in.
        normed: mx.array = self.LayerNorm(x.astype(self.LayerNorm["weight"].dtype))
        return normed


class Layer(nn.Module):
    """One block: a norm after attention, and one after the feed-forward layer."""

    def __init__(self, config: Config, rope: Rope) -> None:
        super().__init__()
        size, inner = config.fields.hidden_size, config.fields.intermediate_size
        self.self_attn = Attention(config.attention, rope)
        self.mlp = GatedMlp(size, inner, config.act)
        if config.attention.out_bias:
            self.mlp.down_proj = nn.Linear(inner, size)
        self.post_attention_layernorm = config.norm(size)
        self.post_mlp_layernorm = config.norm(size)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        x = self.post_attention_layernorm(x + self.self_attn(x, mask, NoCache()))
        normed: mx.array = self.post_mlp_layernorm(x + self.mlp(x))
        return normed


class Model(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, hidden)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        rope = Rope(config.rope, config.attention.head_dim)
        self.embeddings = Embeddings(config)
        self.layers = [Layer(config, rope) for _ in range(config.fields.num_hidden_layers)]
        if config.has_pooler:
            self.pooler = Pooler(config.fields.hidden_size)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; `token_type_ids` (B, L) are zeros by default."""
        mask = mutual_mask(tokens.shape[1], None, attention_mask)
        x = self.embeddings(tokens, token_type_ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Classifier(EncoderClassifier):
    """See `EncoderClassifier`: a layer on the pooled first token; `name` is what the family calls the encoder."""

    def __init__(self, config: Config, name: str) -> None:
        super().__init__(name, Model(config))
        self.classifier = nn.Linear(config.fields.hidden_size, len(config.labels))

    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """(B, L, hidden) -> (B, labels)."""
        logits: mx.array = self.classifier(self[self._name].pooler(hidden))
        return logits


def _architectures(
    name: str, prefix: str, reader: Callable[[Mapping[str, Any]], Config], fields: type[NomicFields]
) -> tuple[Architecture, Architecture]:
    """Give a family's encoder and its classifier; `prefix` begins the names of its classes."""
    encoder = Architecture(
        name=name,
        model_types=(name,),
        class_names=(f"{prefix}Model", f"{prefix}ForMaskedLM"),
        task="embed",
        verified=f"Transformers 5.24 {prefix}Model",
        base_model_prefix=name,
        read_config=reader,
        adapt=pooler_as_stored,
        build=Model,
        fields=fields,
        rules=without_heads(r"^cls\.", r"^lm_head\.", r"^classifier\."),
        adapters=("lora", "dora"),
    )
    classifier = (f"{prefix}ForSequenceClassification",)
    labelled = with_labels(reader, has_pooler=True)
    return encoder, scoring(encoder, classifier, labelled, lambda config: Classifier(config, name))


class Plugin:
    """Offers both, each with its classifier."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Nomic BERT and GTE."""
        nomic = _architectures("nomic_bert", "NomicBert", also_named(NAMES, read_nomic), NomicFields)
        return (*nomic, *_architectures("gte", "Gte", read_gte, GteFields))


PLUGIN = Plugin()
