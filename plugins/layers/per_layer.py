"""Inputs for each layer: beside its state, a layer hears of each token what an embedding for it alone says (Gemma 3n).

The embeddings of all layers are rows of one matrix; what they say is joined with a projection of the state that the
layers begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import cast

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.decoder import Layer
from weightloom.plugins.layers.norms import Norm
from weightloom.plugins.layers.sharing import SharingDecoder


@dataclass(frozen=True, slots=True)
class Heard:
    """What layers hear: `width` numbers each, of the first `rows` tokens of the vocabulary; of others, as of 0."""

    rows: int
    width: int


class PerLayerDecoder(SharingDecoder):
    """A sharing decoder whose layers are called with `heard`, (B, L, width), as well.

    Parameters `embed_tokens_per_layer`, `per_layer_model_projection` and `per_layer_projection_norm` beside the usual.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        norm: Norm,
        layers: Sequence[Layer],
        borrowers: int,
        embed_scale: float,
        heard: Heard,
    ) -> None:
        super().__init__(vocab_size, hidden_size, norm(hidden_size), layers, borrowers, embed_scale)
        self._heard = heard
        self._state_scale = hidden_size**-0.5
        of_all = len(layers) * heard.width
        self.embed_tokens_per_layer = nn.Embedding(heard.rows, of_all)
        self.per_layer_model_projection = nn.Linear(hidden_size, of_all, bias=False)
        self.per_layer_projection_norm = norm(heard.width)

    def calls(self, x: mx.array, tokens: mx.array) -> Sequence[Callable[..., mx.array]]:
        """Give each layer with what it hears, for x (B, L, hidden_size) that tokens (B, L) became."""
        heard, calls = self.heard(x, tokens), cast("Sequence[Callable[..., mx.array]]", self.blocks)
        return [partial(call, heard=heard[:, :, number]) for number, call in enumerate(calls)]

    def heard(self, x: mx.array, tokens: mx.array) -> mx.array:
        """Give what the layers hear of tokens (B, L) that became x: (B, L, layers, width)."""
        known = mx.where(tokens < self._heard.rows, tokens, 0)
        scale = mx.array(sqrt(self._heard.width), x.dtype)
        said = self._by_layer(self.embed_tokens_per_layer(known).astype(x.dtype) * scale)
        seen = self._by_layer(self.per_layer_model_projection(x) * self._state_scale)
        joined: mx.array = (self.per_layer_projection_norm(seen) + said) * 2**-0.5
        return joined

    def _by_layer(self, x: mx.array) -> mx.array:
        return x.reshape(*x.shape[:2], -1, self._heard.width)


class Hears(nn.Module):
    """A layer that hears: `per_layer_input_gate`, `per_layer_projection` and `post_per_layer_input_norm`."""

    def add_hearing(self, hidden_size: int, width: int, act: Activation, norm: Norm) -> None:
        """Add the parameters."""
        self._hearing_act = act
        self.per_layer_input_gate = nn.Linear(hidden_size, width, bias=False)
        self.per_layer_projection = nn.Linear(width, hidden_size, bias=False)
        self.post_per_layer_input_norm = norm(hidden_size)

    def from_heard(self, x: mx.array, heard: mx.array) -> mx.array:
        """Give what is added to states x (B, L, hidden_size) for what is heard (B, L, width)."""
        gate = self._hearing_act(self.per_layer_input_gate(x))
        made: mx.array = self.post_per_layer_input_norm(self.per_layer_projection(gate * heard))
        return made
