"""Feed-forward layers: gated, gated with gate and up in one matrix, and plain."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation, gated
from weightloom.plugins.layers.side_by_side import SideBySide, side_by_side


class GatedMlp(nn.Module):
    """down(act(gate(x)) * up(x)), arXiv 2002.05202; the three matrices are called as `names` says, in this order."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        act: Activation,
        bias: bool = False,
        names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
    ) -> None:
        super().__init__()
        self._gate, self._up, self._down = gate, up, down = names
        self._product = gated(act)
        self._joined: SideBySide | None = None
        self[gate] = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self[up] = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self[down] = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        gate, up = self[self._gate], self[self._up]
        both = self._joined(x) if self._joined is not None and self._joined.holds(gate, up) else (gate(x), up(x))
        made: mx.array = self[self._down](self._product(*both))
        return made

    def fuse(self) -> bool:
        """Compute gate and up as one product, where their matrices are of one kind."""
        self._joined = side_by_side(self[self._gate], self[self._up])
        return self._joined is not None


class FusedMlp(nn.Module):
    """The same with gate over up in one matrix; the two matrices are called as `names` says."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        act: Activation,
        bias: bool = False,
        names: tuple[str, str] = ("gate_up_proj", "down_proj"),
    ) -> None:
        super().__init__()
        self._product = gated(act)
        self._names = names
        self[names[0]] = nn.Linear(hidden_size, 2 * intermediate_size, bias=bias)
        self[names[1]] = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        both, down = self._names
        made: mx.array = self[down](self._product(*mx.split(self[both](x), 2, axis=-1)))
        return made


class PlainMlp(nn.Module):
    """down(act(up(x))); the two matrices are called as `names` says."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        act: Activation,
        bias: bool = False,
        names: tuple[str, str] = ("up_proj", "down_proj"),
    ) -> None:
        super().__init__()
        self._act = act
        self._names = names
        self[names[0]] = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self[names[1]] = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        up, down = self._names
        made: mx.array = self[down](self._act(self[up](x)))
        return made
