"""Blocks: how attention and a feed-forward layer are put together with norms, a form a class."""

from __future__ import annotations

from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.cache import Cache, make_cache
from weightloom.plugins.layers.halves import Halves, can_be_halved
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.norms import Norm


class Mixer(Protocol):
    """What a block asks of a mixer: a call as of attention, and an empty cache of its own kind."""

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        ...

    def make_cache(self) -> Any:
        """Give an empty cache."""
        ...


class Block(nn.Module):
    """Attention, then a feed-forward layer, each after a norm; what they make, times `residual`, is added to what came.

    `window` None: a token sees all before it. `mlp_name` is what the family calls the feed-forward layer; one whose
    layer does more than that overrides `fed`.
    """

    def __init__(
        self,
        attention: nn.Module,
        mlp: nn.Module,
        hidden_size: int,
        norm: Norm,
        window: Window = None,
        residual: float = 1.0,
        mlp_name: str = "mlp",
    ) -> None:
        super().__init__()
        self.window = window
        self._residual = residual
        self._mlp_name = mlp_name
        self._halves: Halves | None = None
        self.self_attn = attention
        self[mlp_name] = mlp
        self.input_layernorm = norm(hidden_size)
        self.post_attention_layernorm = norm(hidden_size)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        if x.shape[1] == 1 and self._halves is not None and self._halves.holds():
            entered, queries, keys, values = self._halves.before(x)
            mixed = self._halves.attention.through_cache(queries, keys, values, mask, cache)
            return self._halves.after(x, entered, mixed)
        entered = self.input_layernorm(x)
        return self._left(x, entered, self.self_attn(entered, mask, cache))

    def compile_steps(self) -> bool:
        """Compile what is done for one token, but for the cache, from now on; say whether it can be."""
        fits = can_be_halved(self.self_attn)
        self._halves = Halves(self, self.input_layernorm, self._left) if fits else None
        return fits

    def _left(self, x: mx.array, entered: mx.array, attended: mx.array) -> mx.array:
        """Give what the block makes of x, where attention has made `attended` of it."""
        x = x + self._scaled(attended)
        return x + self._scaled(self.fed(self.post_attention_layernorm(x)))

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size), normed -> what the feed-forward layer makes, the same shape."""
        made: mx.array = self[self._mlp_name](x)
        return made

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return make_cache(self.window)

    def _scaled(self, x: mx.array) -> mx.array:
        return x if self._residual == 1.0 else x * self._residual


class SandwichBlock(nn.Module):
    """The same with a norm before and after each of the two, as Gemma 2 has it (arXiv 2408.00118)."""

    def __init__(
        self, attention: nn.Module, mlp: nn.Module, hidden_size: int, norm: Norm, window: Window = None
    ) -> None:
        super().__init__()
        self.window = window
        self.self_attn = attention
        self.mlp = mlp
        self.input_layernorm = norm(hidden_size)
        self.post_attention_layernorm = norm(hidden_size)
        self.pre_feedforward_layernorm = norm(hidden_size)
        self.post_feedforward_layernorm = norm(hidden_size)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), mask, cache))
        added: mx.array = self.post_feedforward_layernorm(self.fed(x))
        return x + added

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> what is normed and added: that of the feed-forward layer, on the normed."""
        made: mx.array = self.mlp(self.pre_feedforward_layernorm(x))
        return made

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return make_cache(self.window)


class PostNormBlock(nn.Module):
    """The same with a norm after each of the two alone, as OLMo 2 has it (arXiv 2501.00656)."""

    def __init__(
        self, attention: nn.Module, mlp: nn.Module, hidden_size: int, norm: Norm, window: Window = None
    ) -> None:
        super().__init__()
        self.window = window
        self.self_attn = attention
        self.mlp = mlp
        self.post_attention_layernorm = norm(hidden_size)
        self.post_feedforward_layernorm = norm(hidden_size)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        x = x + self.post_attention_layernorm(self.self_attn(x, mask, cache))
        added: mx.array = self.post_feedforward_layernorm(self.mlp(x))
        return x + added

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return make_cache(self.window)


class ParallelBlock(nn.Module):
    """Attention and a feed-forward layer side by side, both after one norm, both added to what came in."""

    def __init__(
        self, attention: nn.Module, mlp: nn.Module, hidden_size: int, norm: Norm, window: Window = None
    ) -> None:
        super().__init__()
        self.window = window
        self.self_attn = attention
        self.mlp = mlp
        self.input_layernorm = norm(hidden_size)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        normed = self.input_layernorm(x)
        attended: mx.array = self.self_attn(normed, mask, cache)
        added: mx.array = self.mlp(normed)
        return x + attended + added

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return make_cache(self.window)


class SingleBlock(nn.Module):
    """A mixer of any kind after a norm; what it makes is added to what came, as `residual` if that dtype is given."""

    window: Window = None

    def __init__(self, mixer: Mixer, hidden_size: int, norm: Norm, residual: mx.Dtype | None = None) -> None:
        super().__init__()
        self._residual = residual
        self.norm = norm(hidden_size)
        self.mixer = mixer

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        mixed: mx.array = self.mixer(self.norm(x), mask, cache)
        return (x if self._residual is None else x.astype(self._residual)) + mixed

    def make_cache(self) -> Any:
        """Give an empty cache."""
        return self.mixer.make_cache()
