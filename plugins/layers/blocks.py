"""Blocks: how attention and a feed-forward layer are put together with norms, a form a class."""

from __future__ import annotations

from typing import Any, ClassVar

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mixing import Mixer, MixingBlock
from weightloom.plugins.layers.norms import Norm


class Block(MixerBlock):
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
        super().__init__(attention, mlp, hidden_size, norm, Parts(mlp=mlp_name), window, residual=residual)


class NormedBlock(MixingBlock):
    """Parameters `self_attn`, `mlp`, and a norm for each name in `norms`; the forms below say where these are."""

    norms: ClassVar[tuple[str, ...]]

    def __init__(
        self, attention: nn.Module, mlp: nn.Module, hidden_size: int, norm: Norm, window: Window = None
    ) -> None:
        super().__init__(window)
        self.self_attn = attention
        self.mlp = mlp
        for name in self.norms:
            self[name] = norm(hidden_size)


class SandwichBlock(NormedBlock):
    """A norm before and after each of the two, named in this order, as Gemma 2 has it (arXiv 2408.00118)."""

    norms = (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    )

    def entered(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same, normed."""
        normed: mx.array = self[self.norms[0]](x)
        return normed

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what the two make, normed."""
        x = x + self[self.norms[1]](mixed)
        added: mx.array = self[self.norms[3]](self.fed(x))
        return x + added

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> what is normed and added: that of the feed-forward layer, on the normed."""
        made: mx.array = self["mlp"](self[self.norms[2]](x))
        return made


class PostNormBlock(NormedBlock):
    """A norm after each of the two alone, as OLMo 2 has it (arXiv 2501.00656)."""

    norms = ("post_attention_layernorm", "post_feedforward_layernorm")

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what the two make, normed."""
        x = x + self["post_attention_layernorm"](mixed)
        added: mx.array = self["post_feedforward_layernorm"](self["mlp"](x))
        return x + added


class ParallelBlock(NormedBlock):
    """Attention and a feed-forward layer side by side, both after one norm, both added to what came in."""

    norms = ("input_layernorm",)

    def entered(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same, normed."""
        normed: mx.array = self["input_layernorm"](x)
        return normed

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Add what the two make of what is normed."""
        added: mx.array = self["mlp"](entered)
        return x + mixed + added


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
