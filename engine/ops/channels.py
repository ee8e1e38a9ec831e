"""The weight of a convolution with its channels first, as torch has it, or last, as MLX does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.expressions import Expression
from weightloom.engine.ops.base import Amount, ConversionOp, amount, relabel_single
from weightloom.engine.ops.chain import Chain

_MIN_DIMS = 3


@dataclass(frozen=True, slots=True)
class ChannelsFirst(ConversionOp):
    """A weight (out, kernel..., channels) as (out, channels, kernel...).

    `channels`: what one filter sees, a number or config expression (1 where each channel has a filter of its own).
    Some files say that their channels are last and still have them first: a weight whose last dim is not
    `channels`, and whose second is, is left as it is. Where both are, the layout decides, and it is turned.
    Raises PlanError where neither is.
    """

    needs_real_shapes: ClassVar[bool] = True

    channels: Amount = 1

    def __post_init__(self) -> None:
        _check(self.channels)

    def lower(self, chain: Chain) -> None:
        """One permutation a tensor."""
        channels = amount("ChannelsFirst", self.channels, chain.context.config)
        _turn_each("ChannelsFirst", chain, channels, -1, 1)

    def inverse(self) -> ChannelsLast:
        """Put them last again."""
        return ChannelsLast(self.channels)


@dataclass(frozen=True, slots=True)
class ChannelsLast(ConversionOp):
    """A weight (out, channels, kernel...) as (out, kernel..., channels): as ChannelsFirst, the other way."""

    needs_real_shapes: ClassVar[bool] = True

    channels: Amount = 1

    def __post_init__(self) -> None:
        _check(self.channels)

    def lower(self, chain: Chain) -> None:
        """One permutation a tensor."""
        channels = amount("ChannelsLast", self.channels, chain.context.config)
        _turn_each("ChannelsLast", chain, channels, 1, -1)

    def inverse(self) -> ChannelsFirst:
        """Put them first again."""
        return ChannelsFirst(self.channels)


def _check(channels: object) -> None:
    if isinstance(channels, str):
        Expression(channels)
    elif not isinstance(channels, int) or isinstance(channels, bool) or channels < 1:
        raise RuleError(f"channels is {channels!r}", expected="a number or a config expression", field="channels")


def _turn_each(op: str, chain: Chain, channels: int, old: int, new: int) -> None:
    """Move axis `old`, which has `channels`, to `new`; leave a tensor that has them at `new` alone."""
    for number, part in enumerate(chain.parts):
        for item, spec in enumerate(part.specs):
            shape = spec.shape
            if len(shape) < _MIN_DIMS or channels not in (shape[old], shape[new]):
                where = "last" if old < 0 else "first"
                raise PlanError(
                    f"{op}: a tensor of {list(shape)}",
                    expected=f"the weight of a convolution with its channels, {channels}, {where} behind the outputs",
                    field="shape",
                )
            if shape[old] == channels:
                chain.permute(number, item, _moved(len(shape), old % len(shape), new % len(shape)))
    relabel_single(chain)


def _moved(ndim: int, old: int, new: int) -> tuple[int, ...]:
    """Axis `old` at place `new`, the others in order."""
    axes = [axis for axis in range(ndim) if axis != old]
    return (*axes[:new], old, *axes[new:])
