"""BERT as a text encoder (Devlin et al. 2018): hidden states for every token.

Parameter names are those of `BertModel`; a checkpoint of a head model (names under `bert.`) loads too, its head
left out by a named rule and kept for saving back; of a classifier that has to be asked for. The pooler is built when
the checkpoint has one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine import Drop, RuleSet
from weightloom.engine.errors import UsageError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.specs import hookimpl

_ACTIVATIONS = {
    "gelu": nn.gelu,
    "gelu_new": nn.gelu_approx,
    "gelu_pytorch_tanh": nn.gelu_approx,
    "relu": nn.relu,
    "silu": nn.silu,
}


@dataclass(frozen=True)
class Config:
    """The fields of a BERT config that the forward pass needs."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: bool = False
    has_pooler: bool = True


def read_config(content: Mapping[str, Any]) -> Config:
    """Read and check config.json's content; raises ConfigError."""
    config = read(Config, {name: value for name, value in content.items() if name != "has_pooler"})
    heads = config.num_attention_heads
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings")
    refuse_non_positive({name: getattr(config, name) for name in (*sizes, "type_vocab_size", "layer_norm_eps")})
    refuse_unless(
        heads > 0 and config.hidden_size % heads == 0,
        "num_attention_heads",
        heads,
        f"a divisor of hidden_size {config.hidden_size}",
    )
    refuse_unless(not config.is_decoder, "is_decoder", True, "false: an encoder, whose tokens see all others")
    refuse_unless(config.hidden_act in _ACTIVATIONS, "hidden_act", config.hidden_act, ", ".join(_ACTIVATIONS))
    return config


class Embeddings(nn.Module):
    """Words, positions and segments, summed and normalised."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)

    def __call__(self, tokens: mx.array, segments: mx.array) -> mx.array:
        """Tokens and segments (B, L) int -> (B, L, hidden)."""
        positions = mx.arange(tokens.shape[1])
        summed = self.word_embeddings(tokens) + self.token_type_embeddings(segments)
        normed: mx.array = self.LayerNorm(summed + self.position_embeddings(positions))
        return normed


class SelfAttention(nn.Module):
    """Attention over all tokens of a row that the mask allows."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_attention_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under an additive mask (B, 1, 1, L) -> the same shape."""
        rows, length, size = x.shape
        head = size // self.heads

        def split(y: mx.array) -> mx.array:
            return y.reshape(rows, length, self.heads, head).transpose(0, 2, 1, 3)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=head**-0.5, mask=mask)
        return mixed.transpose(0, 2, 1, 3).reshape(rows, length, size)


class Output(nn.Module):
    """A projection, the residual, and the norm after both."""

    def __init__(self, inner: int, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def __call__(self, x: mx.array, residual: mx.array) -> mx.array:
        """(B, L, inner) and (B, L, hidden) -> (B, L, hidden)."""
        normed: mx.array = self.LayerNorm(self.dense(x) + residual)
        return normed


class Attention(nn.Module):
    """Self-attention with its output."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Output(config.hidden_size, config)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under an additive mask (B, 1, 1, L) -> the same shape."""
        return self.output(self.self(x, mask), x)


class Intermediate(nn.Module):
    """The first half of the feed-forward part."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.act = _ACTIVATIONS[config.hidden_act]

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> (B, L, intermediate)."""
        grown: mx.array = self.act(self.dense(x))
        return grown


class Layer(nn.Module):
    """One block."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Output(config.intermediate_size, config)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under an additive mask (B, 1, 1, L) -> the same shape."""
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    """All blocks."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer = [Layer(config) for _ in range(config.num_hidden_layers)]

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under an additive mask (B, 1, 1, L) -> the same shape."""
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Pooler(nn.Module):
    """The first token's state through a layer of its own; used by heads, not by mean pooling."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> (B, hidden)."""
        return mx.tanh(self.dense(x[:, 0]))


class Model(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, hidden)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length = config.max_position_embeddings
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        if config.has_pooler:
            self.pooler = Pooler(config)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; `token_type_ids` (B, L) are zeros by default. Raises UsageError for rows that are too long."""
        if tokens.shape[1] > self.max_length:
            raise UsageError(
                f"{tokens.shape[1]} tokens in a row", expected=f"{self.max_length} at most", field="tokens"
            )
        segments = mx.zeros_like(tokens) if token_type_ids is None else token_type_ids
        x = self.embeddings(tokens, segments)
        mask = None
        if attention_mask is not None:
            hidden = mx.array(-float("inf"), dtype=x.dtype)
            mask = mx.where(attention_mask[:, None, None, :] == 0, hidden, mx.array(0, dtype=x.dtype))
        return self.encoder(x, mask)


def adapt(config: Config, names: Collection[str]) -> Config:
    """Build the pooler only where the checkpoint has one."""
    return replace(config, has_pooler=any(name.endswith("pooler.dense.weight") for name in names))


BERT = Architecture(
    name="bert",
    model_types=("bert",),
    class_names=("BertModel", "BertForMaskedLM", "BertForPreTraining"),
    task="embed",
    base_model_prefix="bert",
    read_config=read_config,
    adapt=adapt,
    build=Model,
    fields=Config,
    rules=RuleSet([Drop([r"^cls\.", r"^classifier\."], why="a head, which an encoder does not use")]),
    adapters=("lora", "dora"),
)


class Plugin:
    """The hook implementation."""

    @hookimpl
    def weightloom_architectures(self) -> Iterable[Architecture]:
        """Offer the encoder, and the classifier that is made of it."""
        from weightloom.plugins.architectures.bert_classifier import BERT_CLASSIFIER

        return [BERT, BERT_CLASSIFIER]


PLUGIN = Plugin()
