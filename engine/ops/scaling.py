"""Factors that one form has multiplied into a weight and the other has not: Multiply, Divide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.expressions import Expression
from weightloom.engine.ops.base import (
    Amount,
    ConversionOp,
    amount,
    axis_of,
    frozen_sizes,
    relabel_single,
    with_text_config,
)
from weightloom.engine.ops.chain import Chain
from weightloom.engine.steps.scaling_step import Divided, Factors, Multiplied

Factor = float | str
# As MLX packs the codes of quantized rows.
_PACKED = "U32"


@dataclass(frozen=True, slots=True)
class _Scaling(ConversionOp):
    """What both ways share: the factors, and one value step that has them in or out."""

    needs_real_shapes: ClassVar[bool] = True
    step: ClassVar[type[Multiplied | Divided]]

    by: tuple[Factor, ...]
    dim: int = 0
    sizes: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _frozen(self.by))
        object.__setattr__(self, "sizes", frozen_sizes(self.sizes))

    def lower(self, chain: Chain) -> None:
        """One value step; none for packed words, and for factors that are all one."""
        name = type(self).__name__
        spec = chain.only(name)
        factors = _factors(name, self.by, (self.dim, self.sizes), chain)
        if spec.dtype != _PACKED and not factors.are_one:
            chain.value(self.step(chain.slot(0, 0), factors, (spec,)), 0, 0)
        relabel_single(chain)


@dataclass(frozen=True, slots=True)
class Multiply(_Scaling):
    """One float tensor times `by`, in its own dtype, rounded to nearest.

    `by`: numbers or config expressions, multiplied with each other first. One that gives a list has a factor for
    each of `sizes`, the rows along `dim` that it is for. The product rounds, so the way back is the source's own bytes
    while the parameter is as it was loaded; from other values it is the quotient, rounded. Words of packed codes (U32)
    are left as they are: their scales and biases, which go through the same rule, take the factors.
    """

    step: ClassVar[type[Multiplied | Divided]] = Multiplied

    def inverse(self) -> Divide:
        """Take them out again: how a tensor is written that was never loaded."""
        return Divide(self.by, self.dim, self.sizes)


@dataclass(frozen=True, slots=True)
class Divide(_Scaling):
    """One float tensor divided by `by`, in its own dtype, rounded to nearest: as Multiply, the other way."""

    step: ClassVar[type[Multiplied | Divided]] = Divided

    def inverse(self) -> Multiply:
        """Multiply them in again: how a tensor is written that was never loaded."""
        return Multiply(self.by, self.dim, self.sizes)


def _frozen(by: Any) -> tuple[Factor, ...]:
    found = tuple(by) if isinstance(by, list | tuple) else (by,)
    if not found or not all(isinstance(each, int | float | str) and not isinstance(each, bool) for each in found):
        raise RuleError(f"by is {by!r}", expected="numbers or config expressions", field="by")
    for each in found:
        if isinstance(each, str):
            Expression(each)
    return found


def _factors(op: str, by: tuple[Factor, ...], rows: tuple[int, tuple[Amount, ...] | None], chain: Chain) -> Factors:
    dim, sizes = rows
    config, ndim = chain.context.config, len(chain.only(op).shape)
    counts = tuple(amount(op, size, config) for size in sizes or ())
    return Factors(tuple(_value(op, each, config, len(counts)) for each in by), axis_of(op, dim, ndim), counts)


def _value(op: str, wanted: Factor, config: Mapping[str, Any], runs: int) -> float | tuple[float, ...]:
    found = Expression(wanted).value(with_text_config(config)) if isinstance(wanted, str) else wanted
    if _is_number(found):
        return float(found)
    if isinstance(found, list) and len(found) == runs and all(map(_is_number, found)):
        return tuple(map(float, found))
    raise PlanError(
        f"{op} needs {wanted!r}, which the config gives as {found!r}",
        expected=f"a number, or a list of {runs} of them" if runs else "a number",
        hint=f"give a config that has {wanted!r}",
        field=str(wanted),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
