"""The block of most models: what mixes tokens, attention or something recurrent, then a feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.cache import make_cache
from weightloom.plugins.layers.masks import Window
from weightloom.plugins.layers.mixing import MixingBlock
from weightloom.plugins.layers.norms import Norm


@dataclass(frozen=True, slots=True)
class Parts:
    """What a family calls the parts of such a block."""

    mixer: str = "self_attn"
    mixer_norm: str = "input_layernorm"
    mlp: str = "mlp"
    mlp_norm: str = "post_attention_layernorm"


class MixerBlock(MixingBlock):
    """What mixes tokens, then a feed-forward layer, each after a norm; what they make, times `residual`, is added.

    The parts are called as `parts` says. A mixer is called as attention is, (x, mask, cache); `cache` makes its empty
    cache where that is not of keys and values. A family whose feed-forward layer is more than that overrides `fed`.
    """

    def __init__(
        self,
        mixer: nn.Module,
        mlp: nn.Module,
        hidden_size: int,
        norm: Norm,
        parts: Parts,
        window: Window = None,
        cache: Callable[[], Any] | None = None,
        residual: float = 1.0,
    ) -> None:
        super().__init__(window)
        self.mixer_name = parts.mixer
        self._parts = parts
        self._cache = cache
        self._residual = residual
        self[parts.mixer] = mixer
        self[parts.mlp] = mlp
        self[parts.mixer_norm] = norm(hidden_size)
        self[parts.mlp_norm] = norm(hidden_size)

    def entered(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same, normed."""
        normed: mx.array = self[self._parts.mixer_norm](x)
        return normed

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what the mixer and the feed-forward layer make."""
        x = x + self._scaled(mixed)
        return x + self._scaled(self.fed(self[self._parts.mlp_norm](x)))

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size), normed -> what the feed-forward layer makes, the same shape."""
        made: mx.array = self[self._parts.mlp](x)
        return made

    def _scaled(self, x: mx.array) -> mx.array:
        return x if self._residual == 1.0 else x * self._residual

    def make_cache(self) -> Any:
        """Give an empty cache."""
        return make_cache(self.window) if self._cache is None else self._cache()
