"""BERT's layers (arXiv 1810.04805), which RoBERTa and its kin share: a norm after each half of a block."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.bert_fields import BertFields
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.masks import mutual_mask
from weightloom.plugins.layers.row_length import refuse_longer

Positions = Callable[[mx.array], mx.array]
"""Tokens (B, L) int -> the row of the position table that each has, (L,) or (B, L) int."""


def in_order(tokens: mx.array) -> mx.array:
    """Count positions from 0."""
    return mx.arange(tokens.shape[1])


def after_padding_id(padding_id: int) -> Positions:
    """Give what counts positions from the id of padding + 1, padding not among them: it has its own id's row."""

    def positions(tokens: mx.array) -> mx.array:
        counts = (tokens != padding_id).astype(mx.int32)
        return mx.cumsum(counts, axis=1) * counts + padding_id

    return positions


class Embeddings(nn.Module):
    """Words, positions and segments, summed and normalised."""

    def __init__(self, fields: BertFields, positions: Positions) -> None:
        super().__init__()
        size = fields.hidden_size
        self._positions = positions
        self.word_embeddings = nn.Embedding(fields.vocab_size, size)
        self.position_embeddings = nn.Embedding(fields.max_position_embeddings, size)
        self.token_type_embeddings = nn.Embedding(fields.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=fields.layer_norm_eps)

    def __call__(self, tokens: mx.array, segments: mx.array) -> mx.array:
        """Tokens and segments (B, L) int -> (B, L, hidden)."""
        summed = self.word_embeddings(tokens) + self.token_type_embeddings(segments)
        normed: mx.array = self.LayerNorm(summed + self.position_embeddings(self._positions(tokens)))
        return normed


class SelfAttention(nn.Module):
    """Attention over all tokens of a row that the mask allows."""

    def __init__(self, fields: BertFields) -> None:
        super().__init__()
        size = fields.hidden_size
        self.heads = fields.num_attention_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask that goes with (B, heads, L, L) -> the same shape."""
        rows, length, size = x.shape
        head = size // self.heads

        def split(y: mx.array) -> mx.array:
            return y.reshape(rows, length, self.heads, head).transpose(0, 2, 1, 3)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=head**-0.5, mask=mask)
        return mixed.transpose(0, 2, 1, 3).reshape(rows, length, size)


class Output(nn.Module):
    """A projection, the residual, and the norm after both."""

    def __init__(self, inner: int, fields: BertFields) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, fields.hidden_size)
        self.LayerNorm = nn.LayerNorm(fields.hidden_size, eps=fields.layer_norm_eps)

    def __call__(self, x: mx.array, residual: mx.array) -> mx.array:
        """(B, L, inner) and (B, L, hidden) -> (B, L, hidden)."""
        normed: mx.array = self.LayerNorm(self.dense(x) + residual)
        return normed


class Attention(nn.Module):
    """Self-attention with its output."""

    def __init__(self, fields: BertFields) -> None:
        super().__init__()
        self.self = SelfAttention(fields)
        self.output = Output(fields.hidden_size, fields)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        return self.output(self.self(x, mask), x)


class Intermediate(nn.Module):
    """The first half of the feed-forward part."""

    def __init__(self, fields: BertFields) -> None:
        super().__init__()
        self.dense = nn.Linear(fields.hidden_size, fields.intermediate_size)
        self.act = activation(fields.hidden_act)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> (B, L, intermediate)."""
        return self.act(self.dense(x))


class Layer(nn.Module):
    """One block."""

    def __init__(self, fields: BertFields) -> None:
        super().__init__()
        self.attention = Attention(fields)
        self.intermediate = Intermediate(fields)
        self.output = Output(fields.intermediate_size, fields)

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    """All blocks."""

    def __init__(self, fields: BertFields) -> None:
        super().__init__()
        self.layer = [Layer(fields) for _ in range(fields.num_hidden_layers)]

    def __call__(self, x: mx.array, mask: mx.array | None) -> mx.array:
        """(B, L, hidden) under a mask -> the same shape."""
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Pooler(nn.Module):
    """The first token's state through a layer of its own; used by heads, not by mean pooling."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> (B, hidden)."""
        return mx.tanh(self.dense(x[:, 0]))


class ClassificationHead(nn.Module):
    """What makes logits of the first token's state, where a classifier has no pooler."""

    def __init__(self, hidden_size: int, labels: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.out_proj = nn.Linear(hidden_size, labels)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden) -> (B, labels)."""
        logits: mx.array = self.out_proj(mx.tanh(self.dense(x[:, 0])))
        return logits


class BertModel(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, hidden)`.

    `positions` says which rows of the position table tokens have, `before` how many of its rows come before the first.
    """

    def __init__(self, fields: BertFields, positions: Positions, before: int, has_pooler: bool) -> None:
        super().__init__()
        self.max_length = fields.max_position_embeddings - before
        self.embeddings = Embeddings(fields, positions)
        self.encoder = Encoder(fields)
        if has_pooler:
            self.pooler = Pooler(fields.hidden_size)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class; `token_type_ids` (B, L) are zeros by default. Raises UsageError for rows that are too long."""
        refuse_longer(tokens, self.max_length)
        segments = mx.zeros_like(tokens) if token_type_ids is None else token_type_ids
        return self.encoder(self.embeddings(tokens, segments), mutual_mask(tokens.shape[1], None, attention_mask))
