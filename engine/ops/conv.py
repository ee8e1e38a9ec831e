"""A convolution whose kernel sees each input once is a linear layer: Conv3dToLinear, LinearToConv3d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import Amount, ConversionOp, amount, frozen_sizes, relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.engine.views.tiles import Shape

_KERNEL_DIMS = 3


@dataclass(frozen=True, slots=True)
class Conv3dToLinear(ConversionOp):
    """The weight of a patch convolution, (out, in, depth, height, width), as (out, in * depth * height * width).

    `kernel_size`: three sizes, or one for a cube. Raises PlanError for a tensor of other sizes.
    """

    needs_real_shapes: ClassVar[bool] = True

    in_channels: Amount
    kernel_size: tuple[Amount, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel_size", _kernel(self.kernel_size))

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""
        inner = _inner("Conv3dToLinear", self.in_channels, self.kernel_size, chain.context.config)
        _reshape_each("Conv3dToLinear", chain, inner, (prod(inner),))

    def inverse(self) -> LinearToConv3d:
        """The convolution again."""
        return LinearToConv3d(self.in_channels, self.kernel_size)


@dataclass(frozen=True, slots=True)
class LinearToConv3d(ConversionOp):
    """The weight of a linear layer, (out, in * depth * height * width), as a convolution's, (out, in, depth, ...).

    `kernel_size`: three sizes, or one for a cube. Raises PlanError for a tensor of other sizes.
    """

    needs_real_shapes: ClassVar[bool] = True

    in_channels: Amount
    kernel_size: tuple[Amount, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel_size", _kernel(self.kernel_size))

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""
        inner = _inner("LinearToConv3d", self.in_channels, self.kernel_size, chain.context.config)
        _reshape_each("LinearToConv3d", chain, (prod(inner),), inner)

    def inverse(self) -> Conv3dToLinear:
        """The linear layer again."""
        return Conv3dToLinear(self.in_channels, self.kernel_size)


def _kernel(sizes: Any) -> tuple[Amount, ...]:
    found = frozen_sizes(sizes)
    if found is None or len(found) not in (1, _KERNEL_DIMS):
        raise RuleError(f"kernel_size is {sizes!r}", expected="three sizes, or one for a cube", field="kernel_size")
    return found * (_KERNEL_DIMS // len(found))


def _inner(op: str, channels: Amount, kernel: tuple[Amount, ...], config: Mapping[str, Any]) -> Shape:
    return tuple(amount(op, size, config) for size in (channels, *kernel))


def _reshape_each(op: str, chain: Chain, old: Shape, new: Shape) -> None:
    for number, part in enumerate(chain.parts):
        for item, spec in enumerate(part.specs):
            if not spec.shape or spec.shape[1:] != old:
                raise PlanError(
                    f"{op}: a tensor of {list(spec.shape)}",
                    expected=f"[out, {', '.join(map(str, old))}]",
                    field="shape",
                )
            chain.reshape(number, item, (spec.shape[0], *new))
    relabel_single(chain)
