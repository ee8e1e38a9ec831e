"""The causal decoder that text models share: layers on embeddings, a last norm, scores for each token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.cache import Cache, NoCache, padding_of
from weightloom.plugins.layers.masks import Mask, Window, causal_mask
from weightloom.plugins.layers.stages import Alone, Elsewhere, Handover, Stage


class Layer(Protocol):
    """What a decoder asks of a layer: its window, a call, and an empty cache of its own kind."""

    window: Window

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        ...

    def make_cache(self) -> Any:
        """Give an empty cache: anything with `offset` and `padding`."""
        ...


@dataclass(frozen=True, slots=True)
class Names:
    """What a family calls the parts of its decoder, and the decoder and the head in the whole."""

    embedding: str = "embed_tokens"
    layers: str = "layers"
    norm: str = "norm"
    decoder: str = "model"
    head: str = "lm_head"


LLAMA_NAMES = Names()


class Decoder(nn.Module):
    """Embeddings, times `embed_scale`, layers and the last norm; parameters as `names` says."""

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        norm: nn.Module,
        layers: Sequence[Layer],
        embed_scale: float = 1.0,
        names: Names = LLAMA_NAMES,
    ) -> None:
        super().__init__()
        self._names = names
        self._embed_scale = embed_scale
        self._handover: Handover = Alone()
        self[names.embedding] = nn.Embedding(vocab_size, hidden_size)
        self[names.layers] = list(layers)
        self[names.norm] = norm

    @property
    def names(self) -> Names:
        """What its parts are called."""
        return self._names

    @property
    def embedding(self) -> nn.Embedding:
        """The embedding of tokens."""
        found: nn.Embedding = self[self._names.embedding]
        return found

    @property
    def blocks(self) -> list[Layer]:
        """The layers, in order."""
        found: list[Layer] = self[self._names.layers]
        return found

    def __call__(self, tokens: mx.array, cache: Sequence[Cache] | None = None) -> mx.array:
        """Tokens (B, L) int -> hidden states (B, L, hidden_size); `cache` holds one entry a layer."""
        caches = cache or [NoCache()] * len(self.blocks)
        first, length = caches[0], tokens.shape[1]
        return self.under(lambda window: causal_mask(length, first.offset, window, padding_of(first)), tokens, caches)

    def under(self, mask_of: Callable[[Window], Mask], tokens: mx.array, caches: Sequence[Cache]) -> mx.array:
        """Give hidden states as a call does, under masks of another kind: `mask_of` gives that of a window."""
        first = caches[0]
        masks: dict[Window, Mask] = {window: mask_of(window) for window in {layer.window for layer in self.blocks}}
        norm = self[self._names.norm]
        dtype = norm.weight.dtype
        x = self.through(self._handover.take(self.embed(tokens, first, dtype)), tokens, masks, caches)
        last: mx.array = norm(self._handover.give(x, dtype))
        return last

    def through(self, x: mx.array, tokens: mx.array, masks: Mapping[Window, Mask], caches: Sequence[Cache]) -> mx.array:
        """Put x (B, L, hidden_size), which tokens (B, L) became, through the layers; the shape stays."""
        for layer, own in zip(self.blocks, caches, strict=True):
            x = layer(x, masks[layer.window], own)
        return x

    def embed(self, tokens: mx.array, first: Cache, dtype: mx.Dtype) -> mx.array:
        """Tokens (B, L) int -> what the first layer works on, (B, L, hidden_size), `dtype`; `first` is its cache."""
        # A packed embedding may give bfloat16, whatever the layers compute in.
        found: mx.array = self.embedding(tokens).astype(dtype)
        return found if self._embed_scale == 1.0 else found * mx.array(self._embed_scale, dtype)

    def at_stage(self, stage: Stage) -> None:
        """Keep the layers of one stage alone."""
        layers = self.blocks
        here = stage.layers(len(layers))
        kept = [layer if number in here else Elsewhere(layer.window) for number, layer in enumerate(layers)]
        self[self._names.layers] = kept
        self._handover = stage


class CausalLM(nn.Module):
    """A decoder and its head. Where they are `tied` the embeddings score the tokens.

    `finish`, if given, makes of scores (B, L, vocab) the logits: a multiplier or a cap.
    """

    def __init__(
        self,
        decoder: Decoder,
        tied: bool,
        finish: Callable[[mx.array], mx.array] | None = None,
        head_bias: bool = False,
    ) -> None:
        super().__init__()
        self._names = decoder.names
        self._finish = finish
        self[decoder.names.decoder] = decoder
        if not tied:
            vocab_size, hidden_size = decoder.embedding.weight.shape
            self[decoder.names.head] = nn.Linear(hidden_size, vocab_size, bias=head_bias)

    @property
    def decoder(self) -> Decoder:
        """All but the head."""
        found: Decoder = self[self._names.decoder]
        return found

    def __call__(self, tokens: mx.array, cache: Sequence[Cache] | None = None) -> mx.array:
        """Tokens (B, L) int -> logits (B, L, vocab); with a cache the tokens follow those that it has seen."""
        return self.head(self.body(tokens, cache))

    def body(self, tokens: mx.array, cache: Sequence[Cache] | None = None) -> mx.array:
        """Tokens (B, L) int -> hidden states (B, L, hidden_size)."""
        return self.decoder(tokens, cache)

    def head(self, hidden: mx.array) -> mx.array:
        """Hidden states (B, L, hidden_size) -> logits (B, L, vocab): for the last position alone, say."""
        own = self._names.head in self
        scores: mx.array = self[self._names.head](hidden) if own else self.decoder.embedding.as_linear(hidden)
        return scores if self._finish is None else self._finish(scores)

    def make_cache(self) -> list[Cache]:
        """Give an empty cache for each layer."""
        return [layer.make_cache() for layer in self.decoder.blocks]

    def at_stage(self, group: mx.distributed.Group) -> None:
        """Keep the layers of this rank's stage alone; embeddings, last norm and head are on all ranks."""
        self.decoder.at_stage(Stage(group))


def times(factor: float) -> Callable[[mx.array], mx.array] | None:
    """Give what multiplies scores by a factor; None where it is 1."""
    return None if factor == 1.0 else lambda scores: scores * factor


def capped(limit: float | None) -> Callable[[mx.array], mx.array] | None:
    """Give what caps scores softly: limit * tanh(score / limit); None without a limit."""
    return None if limit is None else lambda scores: mx.tanh(scores / limit) * limit
