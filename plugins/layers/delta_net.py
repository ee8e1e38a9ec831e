"""Linear attention by the gated delta rule, as Gated DeltaNet has it (arXiv 2412.06464)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.linear_fields import LinearFields
from weightloom.plugins.layers.activations import Activation, silu, softplus
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.delta_rule import gated_delta_rule, unit
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.side_by_side import SideBySide, side_by_side
from weightloom.plugins.layers.state import State, without_padding


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """Sizes: heads of queries and keys, of which each serves value_heads / key_heads in a row, and of values.

    `width` is how many tokens the convolution sees; rates go up to `top_rate`, beyond 1 where what was held may turn
    its sign (arXiv 2411.12537).
    """

    hidden_size: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    width: int
    top_rate: float = 1.0

    @classmethod
    def of(cls, fields: LinearFields) -> DeltaShape:
        """Give the shape that a config says."""
        return cls(
            fields.hidden_size,
            fields.linear_num_key_heads,
            fields.linear_num_value_heads,
            fields.linear_key_head_dim,
            fields.linear_value_head_dim,
            fields.linear_conv_kernel_dim,
        )

    @property
    def keys(self) -> int:
        """The width of all keys."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """The width of all values."""
        return self.value_heads * self.value_dim


class Projected(NamedTuple):
    """What tokens are made into: `mixed` is queries, keys and values side by side, (B, L, 2 * keys + values).

    `gate` is (B, L, values), `rate`, what rates are made of, (B, L, value_heads); `step` is what decays are made of.
    """

    mixed: mx.array
    gate: mx.array
    rate: mx.array
    step: mx.array


class GatedNorm(nn.Module):
    """An RMS norm whose result is multiplied by an activated gate; parameter `weight` (size,)."""

    def __init__(self, size: int, eps: float, act: Activation = silu) -> None:
        super().__init__()
        self._eps = eps
        self._act = act
        self.weight = mx.ones((size,))

    def __call__(self, x: mx.array, gate: mx.array) -> mx.array:
        """(..., size) and a gate of the same shape -> the same shape, in x's dtype."""
        normed = mx.fast.rms_norm(x, self.weight, self._eps).astype(mx.float32)
        return (normed * self._act(gate.astype(mx.float32))).astype(x.dtype)


class DeltaMixer(nn.Module):
    """Queries, keys and values through a short convolution, then the gated delta rule; queries and keys of length 1.

    Parameters `conv1d` and those of the linear layers on what comes in, `inputs`: how wide each is, by name. A family
    makes the others, which it names in its own way, and uses all in `project`, `log_decay` and `out`.
    """

    def __init__(self, shape: DeltaShape, act: Activation, inputs: Mapping[str, int]) -> None:
        super().__init__()
        self._shape = shape
        self._act = act
        self._inputs = tuple(inputs)
        self._joined: SideBySide | None = None
        self.conv1d = CausalConv1d(2 * shape.keys + shape.values, shape.width)
        for name, width in inputs.items():
            self[name] = nn.Linear(shape.hidden_size, width, bias=False)

    def __call__(self, x: mx.array, mask: Mask, state: State) -> mx.array:
        """Mix tokens (B, L, hidden_size); `state` takes the memory of each head and what the convolution sees."""
        shape, made = self._shape, self.project(x)
        mixed = self.conv1d(made.mixed, state, "conv", self._act)
        queries, keys, values = mx.split(mixed, [shape.keys, 2 * shape.keys], axis=-1)
        rate = mx.sigmoid(made.rate.astype(mx.float32)) * shape.top_rate
        read, memory = gated_delta_rule(
            unit(_by_head(queries, shape.key_heads)) * shape.key_dim**-0.5,
            unit(_by_head(keys, shape.key_heads)),
            _by_head(values, shape.value_heads),
            self.log_decay(made.step.astype(mx.float32)),
            without_padding(rate, state),
            state.get("memory"),
        )
        state.put(x.shape[1], memory=memory)
        return self.out(read.astype(x.dtype), _by_head(made.gate, shape.value_heads))

    def projected(self, x: mx.array) -> list[mx.array]:
        """(B, L, hidden_size) -> what each of the linear layers on it makes, in their order."""
        layers = [self[name] for name in self._inputs]
        if self._joined is not None and self._joined.holds(*layers):
            return self._joined(x)
        return [layer(x) for layer in layers]

    def fuse(self) -> bool:
        """Compute what the linear layers on what comes in make as one product, where their matrices are of one kind."""
        self._joined = side_by_side(*(self[name] for name in self._inputs))
        return self._joined is not None

    def log_decay(self, step: mx.array) -> mx.array:
        """What `project` gave as `step`, float32 -> logarithms of decays, as the rule takes them."""
        raise NotImplementedError

    def project(self, x: mx.array) -> Projected:
        """(B, L, hidden_size) -> what the rule works on."""
        raise NotImplementedError

    def out(self, read: mx.array, gate: mx.array) -> mx.array:
        """What was read and the gate, (B, L, value_heads, value_dim) -> (B, L, hidden_size)."""
        raise NotImplementedError


class DeltaNet(DeltaMixer):
    """The same with a decay a head: exp(-exp(A_log) softplus(step + dt_bias)); `A_log`, `dt_bias` (value_heads,)."""

    def __init__(self, shape: DeltaShape, act: Activation, inputs: Mapping[str, int]) -> None:
        super().__init__(shape, act, inputs)
        self.dt_bias = mx.ones((shape.value_heads,))
        self.A_log = mx.zeros((shape.value_heads,))

    def log_decay(self, step: mx.array) -> mx.array:
        """Steps (B, L, value_heads) float32 -> logarithms of decays, the same shape."""
        rates = mx.exp(self.A_log.astype(mx.float32))
        return -rates * softplus(step + self.dt_bias.astype(mx.float32))


class NormedDeltaNet(DeltaNet):
    """The same whose `norm`, gated, and `out_proj` make the output of what was read."""

    def __init__(self, shape: DeltaShape, act: Activation, eps: float, inputs: Mapping[str, int]) -> None:
        super().__init__(shape, act, inputs)
        self.norm = GatedNorm(shape.value_dim, eps)
        self.out_proj = nn.Linear(shape.values, shape.hidden_size, bias=False)

    def out(self, read: mx.array, gate: mx.array) -> mx.array:
        """What was read and the gate, (B, L, value_heads, value_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.out_proj(self.norm(read, gate).flatten(2))
        return made


def _by_head(x: mx.array, heads: int) -> mx.array:
    """(B, L, heads * dims) -> (B, L, heads, dims)."""
    return x.reshape(*x.shape[:2], heads, -1)
