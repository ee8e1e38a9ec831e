"""The mixer of Mamba 2 (arXiv 2405.21060): heads with one rate of decay each, and a norm after the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.mamba2_fields import Mamba2Fields
from weightloom.plugins.layers.activations import Activation, silu, softplus
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.ssd import ssd
from weightloom.plugins.layers.state import State, StateCache, without_padding


@dataclass(frozen=True, slots=True)
class Mamba2Shape:
    """Sizes of a mixer: `heads` of `head_dim` inputs with `states` numbers each; `groups` share what is let in and out.

    Step sizes are kept within `limits`, at each token alike.
    """

    hidden_size: int
    heads: int
    head_dim: int
    states: int
    groups: int
    width: int
    act: Activation = silu
    conv_bias: bool = True
    bias: bool = False
    out_bias: bool = False
    limits: tuple[float, float] = (0.0, inf)

    @classmethod
    def of(cls, fields: Mamba2Fields, act: Activation) -> Mamba2Shape:
        """Give the shape that a config says."""
        return cls(
            fields.hidden_size,
            fields.mamba_n_heads,
            fields.channels // fields.mamba_n_heads,
            fields.mamba_d_state,
            fields.mamba_n_groups,
            fields.mamba_d_conv,
            act,
            fields.mamba_conv_bias,
            fields.mamba_proj_bias,
            fields.out_bias,
            limits_of(fields.time_step_limit),
        )

    @property
    def channels(self) -> int:
        """How many inputs all heads have."""
        return self.heads * self.head_dim

    @property
    def shared(self) -> int:
        """How many numbers all groups have."""
        return self.groups * self.states


class Mamba2Mixer(nn.Module):
    """Mixes tokens over time; parameters `in_proj`, `conv1d`, `dt_bias`, `A_log`, `D`, `norm`, `out_proj`.

    `norm` takes what was mixed and the gate, (B, L, channels) float32 each. A family that multiplies what comes out
    of `in_proj` overrides `project`.
    """

    def __init__(self, shape: Mamba2Shape, norm: nn.Module) -> None:
        super().__init__()
        self._shape = shape
        convolved = shape.channels + 2 * shape.shared
        self.in_proj = nn.Linear(shape.hidden_size, shape.channels + convolved + shape.heads, bias=shape.bias)
        self.conv1d = CausalConv1d(convolved, shape.width, shape.conv_bias)
        self.dt_bias = mx.zeros((shape.heads,))
        self.A_log = mx.zeros((shape.heads,))
        self.D = mx.ones((shape.heads,))
        self.norm = norm
        self.out_proj = nn.Linear(shape.channels, shape.hidden_size, bias=shape.out_bias)

    def __call__(self, x: mx.array, mask: Mask, cache: State) -> mx.array:
        """(B, L, hidden_size) -> the same shape; `cache` keeps the states, and a mask says nothing to it."""
        shape = self._shape
        gate, mixed, dt = mx.split(self.project(x), [shape.channels, -shape.heads], axis=-1)
        mixed = without_padding(self.conv1d(mixed, cache, activation=shape.act), cache)
        inputs, b, c = mx.split(mixed, [shape.channels, shape.channels + shape.shared], axis=-1)
        y = self._scanned(_by(shape.heads, inputs), dt, _by(shape.groups, b), _by(shape.groups, c), cache)
        made: mx.array = self.out_proj(self.norm(y.flatten(2), gate.astype(mx.float32)).astype(x.dtype))
        return made

    def project(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> gate, inputs, what is let in, what is let out and step sizes, side by side."""
        made: mx.array = self.in_proj(x)
        return made

    def _scanned(self, x: mx.array, dt: mx.array, b: mx.array, c: mx.array, cache: State) -> mx.array:
        """Inputs (B, L, heads, head_dim) and what ssd takes beside them -> float32 of the same shape."""
        steps = mx.clip(softplus(dt.astype(mx.float32) + self.dt_bias.astype(mx.float32)), *self._shape.limits)
        y, state = ssd(x, steps, -mx.exp(self.A_log.astype(mx.float32)), b, c, cache.get("scan"))
        cache.put(x.shape[1], scan=state)
        return y + x * self.D.astype(mx.float32)[:, None]

    def make_cache(self) -> StateCache:
        """Give an empty cache."""
        return StateCache()


def limits_of(given: Sequence[float] | None) -> tuple[float, float]:
    """Give the limits of step sizes, none for None; raises ConfigError, naming `time_step_limit`, for no pair."""
    lowest, highest = (0.0, inf) if given is None else given if len(given) == 2 else (1.0, 0.0)
    refuse_unless(
        0 <= lowest <= highest, "time_step_limit", given, "the least and the largest step size, 0 or more each"
    )
    return lowest, highest


class GateThenNorm(nn.Module):
    """The gate, then an RMS norm of each of `groups` equal parts; parameter `weight` (size,)."""

    def __init__(self, size: int, groups: int, eps: float) -> None:
        super().__init__()
        self._groups, self._eps = groups, eps
        self.weight = mx.ones((size,))

    def __call__(self, x: mx.array, gate: mx.array) -> mx.array:
        """(B, L, size) -> the same shape."""
        return self.normed(x * silu(gate))

    def normed(self, x: mx.array) -> mx.array:
        """Norm each part of (B, L, size)."""
        return mx.fast.rms_norm(_by(self._groups, x), None, self._eps).flatten(2) * self.weight


class Gate(nn.Module):
    """The gate without a norm."""

    def __call__(self, x: mx.array, gate: mx.array) -> mx.array:
        """(B, L, size) -> the same shape."""
        return x * silu(gate)


class NormThenGate(GateThenNorm):
    """The norm of each part, and then the gate."""

    def __call__(self, x: mx.array, gate: mx.array) -> mx.array:
        """(B, L, size) -> the same shape."""
        return self.normed(x) * silu(gate)


def _by(count: int, x: mx.array) -> mx.array:
    """(B, L, size) -> (B, L, count, size / count)."""
    return x.reshape(*x.shape[:2], count, -1)
