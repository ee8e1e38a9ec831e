"""The mixer of Mamba (arXiv 2312.00752): a short convolution and a selective scan, with a gate."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.checks import WIDEST
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.layers.activations import Activation, silu, softplus
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.selective_scan import selective_scan
from weightloom.plugins.layers.state import State, StateCache, without_padding


@dataclass(frozen=True, slots=True)
class MambaShape:
    """Sizes of a mixer: `channels` with `states` numbers each; step sizes come from `rank` numbers a token.

    `bias` is that of the projections in and out; the gate's activation is always SiLU.
    """

    hidden_size: int
    channels: int
    states: int
    rank: int
    width: int
    act: Activation = silu
    conv_bias: bool = True
    bias: bool = False


class MambaMixer(nn.Module):
    """Mixes tokens over time; parameters `in_proj`, `conv1d`, `x_proj`, `dt_proj`, `A_log`, `D`, `out_proj`.

    A family that norms what comes from `x_proj` overrides `normed`.
    """

    def __init__(self, shape: MambaShape) -> None:
        super().__init__()
        self._shape = shape
        self.in_proj = nn.Linear(shape.hidden_size, 2 * shape.channels, bias=shape.bias)
        self.conv1d = CausalConv1d(shape.channels, shape.width, shape.conv_bias)
        self.x_proj = nn.Linear(shape.channels, shape.rank + 2 * shape.states, bias=False)
        self.dt_proj = nn.Linear(shape.rank, shape.channels)
        self.A_log = mx.zeros((shape.channels, shape.states))
        self.D = mx.ones((shape.channels,))
        self.out_proj = nn.Linear(shape.channels, shape.hidden_size, bias=shape.bias)

    def __call__(self, x: mx.array, mask: Mask, cache: State) -> mx.array:
        """(B, L, hidden_size) -> the same shape; `cache` keeps the states, and a mask says nothing to it."""
        shape = self._shape
        mixed, gate = mx.split(self.in_proj(x), 2, axis=-1)
        mixed = without_padding(self.conv1d(mixed, cache, activation=shape.act), cache)
        dt, b, c = self.normed(*mx.split(self.x_proj(mixed), [shape.rank, shape.rank + shape.states], axis=-1))
        steps = softplus(self.dt_proj(dt).astype(mx.float32))
        y, state = selective_scan(mixed, steps, -mx.exp(self.A_log.astype(mx.float32)), b, c, cache.get("scan"))
        cache.put(x.shape[1], scan=state)
        made: mx.array = self.out_proj(((y + mixed * self.D.astype(mx.float32)) * silu(gate)).astype(x.dtype))
        return made

    def normed(self, dt: mx.array, b: mx.array, c: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm what step sizes come from, (B, L, rank), and b and c, (B, L, states) each."""
        return dt, b, c

    def make_cache(self) -> StateCache:
        """Give an empty cache."""
        return StateCache()


def rank_of(given: int | str, hidden_size: int, field: str) -> int:
    """Give how many numbers step sizes come from: as given, or where "auto", a 16th of the hidden size, rounded up.

    Raises ConfigError, naming `field`, for anything else.
    """
    if given == "auto":
        return -(-hidden_size // 16)
    fits = isinstance(given, int) and 0 < given <= WIDEST
    refuse_unless(fits, field, given, f'"auto", or a number from 1 to {WIDEST}')
    return int(given)
