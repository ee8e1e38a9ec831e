"""The causal decoder that text models share: blocks on embeddings, a last norm, scores for each token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.attention import Attention
from weightloom.plugins.layers.cache import Cache, NoCache, make_cache
from weightloom.plugins.layers.masks import Mask, causal_mask
from weightloom.plugins.layers.stages import Alone, Elsewhere, Handover, Stage


class Block(nn.Module):
    """Attention, then a feed-forward layer, each after a norm and added to what came in. `window` None: sees all."""

    def __init__(self, attention: Attention, mlp: nn.Module, hidden_size: int, eps: float, window: int | None) -> None:
        super().__init__()
        self.window = window
        self.self_attn = attention
        self.mlp = mlp
        self.input_layernorm = nn.RMSNorm(hidden_size, eps)
        self.post_attention_layernorm = nn.RMSNorm(hidden_size, eps)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        x = x + self.self_attn(self.input_layernorm(x), mask, cache)
        added: mx.array = self.mlp(self.post_attention_layernorm(x))
        return x + added

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return make_cache(self.window)


class Decoder(nn.Module):
    """Embeddings, blocks and the last norm; parameters `embed_tokens`, `layers`, `norm`."""

    def __init__(self, vocab_size: int, hidden_size: int, eps: float, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers: list[Block | Elsewhere] = list(blocks)
        self._handover: Handover = Alone()
        self.norm = nn.RMSNorm(hidden_size, eps)

    def __call__(self, tokens: mx.array, cache: Sequence[Cache] | None = None) -> mx.array:
        """Tokens (B, L) int -> hidden states (B, L, hidden_size); `cache` holds one entry a layer."""
        caches = cache or [NoCache()] * len(self.layers)
        length, offset = tokens.shape[1], caches[0].offset
        windows = {layer.window for layer in self.layers}
        masks: dict[int | None, Mask] = {window: causal_mask(length, offset, window) for window in windows}
        dtype = self.norm.weight.dtype
        # A packed embedding may give bfloat16, whatever the layers compute in.
        x: mx.array = self._handover.take(self.embed_tokens(tokens).astype(dtype))
        for layer, own in zip(self.layers, caches, strict=True):
            x = layer(x, masks[layer.window], own)
        last: mx.array = self.norm(self._handover.give(x, dtype))
        return last

    def at_stage(self, stage: Stage) -> None:
        """Keep the layers of one stage alone."""
        here = stage.layers(len(self.layers))
        self.layers = [layer if number in here else Elsewhere(layer.window) for number, layer in enumerate(self.layers)]
        self._handover = stage


class CausalLM(nn.Module):
    """A decoder and its head. Without an `lm_head` of its own the embeddings score the tokens."""

    def __init__(self, decoder: Decoder, tied: bool) -> None:
        super().__init__()
        self.model = decoder
        if not tied:
            vocab_size, hidden_size = decoder.embed_tokens.weight.shape
            self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)

    def __call__(self, tokens: mx.array, cache: Sequence[Cache] | None = None) -> mx.array:
        """Tokens (B, L) int -> logits (B, L, vocab); with a cache the tokens follow those that it has seen."""
        return self.head(self.body(tokens, cache))

    def body(self, tokens: mx.array, cache: Sequence[Cache] | None = None) -> mx.array:
        """Tokens (B, L) int -> hidden states (B, L, hidden_size)."""
        return self.model(tokens, cache)

    def head(self, hidden: mx.array) -> mx.array:
        """Hidden states (B, L, hidden_size) -> logits (B, L, vocab): for the last position alone, say."""
        score: Callable[[mx.array], mx.array] = self.lm_head if "lm_head" in self else self.model.embed_tokens.as_linear
        return score(hidden)

    def make_cache(self) -> list[Cache]:
        """Give an empty cache for each layer."""
        return [layer.make_cache() for layer in self.model.layers]

    def at_stage(self, group: mx.distributed.Group) -> None:
        """Keep the layers of this rank's stage alone; embeddings, last norm and head are on all ranks."""
        self.model.at_stage(Stage(group))
