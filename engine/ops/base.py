"""The form of an op: an immutable value that lowers itself to moves, and knows the op that undoes it.

An op never sees data. `lower` says, on the shapes at hand, which moves it amounts to; inference, the inverse
of a bound chain, and reading a shard all follow from the moves. An op that changes values adds a `ValueStep`
instead. Ours and a third party's have the same form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from weightloom.engine.errors import NotInvertible, PlanError, RuleError
from weightloom.engine.expressions import Expression
from weightloom.engine.ops.chain import Chain
from weightloom.engine.views.tiles import Shape

Amount = int | str


@dataclass(frozen=True, slots=True)
class OnFactors:
    """An op as it acts on a change of low rank, `B @ A`: the ops for A, those for B, and how many dims it leaves.

    A is (..., rank, columns) and B (..., rows, rank) where the tensor that they change is (..., rows, columns). `rows`
    is the ops for what each row has one of, (..., rows); None where the op does not leave rows whole.
    """

    a: tuple[ConversionOp, ...]
    b: tuple[ConversionOp, ...]
    ndim: int
    rows: tuple[ConversionOp, ...] | None = None


class ConversionOp(ABC):
    """One op of a converter: a frozen dataclass with `lower` and `inverse`.

    `needs_real_shapes`: made-up shapes say nothing about whether it can be lowered.
    """

    invertible: ClassVar[bool] = True
    needs_real_shapes: ClassVar[bool] = False

    @abstractmethod
    def lower(self, chain: Chain) -> None:
        """Append the moves that this op is, for the shapes in `chain`; raises PlanError where they do not fit."""

    def inverse(self) -> ConversionOp:
        """Give the op that undoes this one; raises NotInvertible."""
        raise NotInvertible(
            f"{type(self).__name__} has no inverse",
            expected="an op that says how it is undone",
            hint="define `inverse`, or mark the rule lossy; such a checkpoint cannot be saved back",
            rule=type(self).__name__,
        )

    def on_factors(self, ndim: int) -> OnFactors:
        """Say how it acts on the factors of a change of a tensor with `ndim` dims, two at least; raises RuleError."""
        raise not_on_factors(self, "it does not say how it acts on them")


def not_on_factors(op: ConversionOp, why: str) -> RuleError:
    """Give the error for an op that cannot be carried over to the factors of a change."""
    return RuleError(
        f"{op} cannot be carried over to the two factors of a low-rank change: {why}",
        expected="an op that stacks, joins or reorders whole rows or columns",
        hint="add the change to the weights before they are converted",
        field="operations",
    )


def along(op: ConversionOp, dim: int, ndim: int, rows: ConversionOp, single: ConversionOp) -> OnFactors:
    """Say how an op acts on the factors that works on the rows of `dim` alone: on the one that has this dim, or both.

    `rows` is the op with a `dim` counted from the end, `single` with one counted from the start.
    """
    axis = axis_of(type(op).__name__, dim, ndim)
    return OnFactors(
        (rows,) if axis != ndim - 2 else (),
        (rows,) if axis != ndim - 1 else (),
        ndim,
        () if axis == ndim - 1 else (single,),
    )


def axis_of(op: str, dim: int, ndim: int, *, new: bool = False) -> int:
    """Turn a dim, negative ones counted from the end, into an index; raises PlanError when there is none.

    `new` allows one more, for an op that adds a dim.
    """
    count = ndim + 1 if new else ndim
    if not -count <= dim < count:
        raise PlanError(
            f"{op}: dim {dim} of a tensor with {ndim} dims",
            expected=f"a dim from {-count} to {count - 1}",
            field="dim",
        )
    return dim % count


def amount(op: str, wanted: Amount, config: Mapping[str, Any]) -> int:
    """Work out a size or count that is a number, or an expression over the config (text config included)."""
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        value: Any = wanted
    else:
        value = Expression(str(wanted)).value(with_text_config(config))
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise PlanError(
            f"{op} needs {wanted!r}, which the config gives as {value!r}",
            expected="a whole number",
            hint=f"give a config that has {wanted!r}",
            field=str(wanted),
        )
    return value


def with_text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let a composite model's fields be found: its text config's, where the config itself has none."""
    nested = config.get("text_config")
    return {**nested, **config} if isinstance(nested, Mapping) else config


def frozen_sizes(sizes: Any) -> tuple[Amount, ...] | None:
    """Check and freeze a list of sizes; raises RuleError."""
    if sizes is None:
        return None
    found = tuple(sizes) if isinstance(sizes, list | tuple) else (sizes,)
    if not found or not all(isinstance(size, int | str) and not isinstance(size, bool) for size in found):
        raise RuleError(f"sizes are {sizes!r}", expected="numbers or config expressions", field="sizes")
    for size in found:
        if isinstance(size, str):
            Expression(size)
    return found


def sizes_of(op: str, sizes: tuple[Amount, ...], elements: int, config: Mapping[str, Any]) -> Shape:
    """Work out sizes of which one may be -1: what is left of `elements`; raises PlanError where they do not fit."""
    known = [None if size == -1 else amount(op, size, config) for size in sizes]
    rest = prod(size for size in known if size is not None)
    if known.count(None) > 1 or (None in known and (rest == 0 or elements % rest)):
        raise PlanError(
            f"{op}: {elements} elements for sizes {', '.join(map(str, sizes))}",
            expected="sizes that divide the elements, one -1 at most",
            field="operations",
        )
    found = tuple(elements // rest if size is None else size for size in known)
    if prod(found) != elements:
        raise PlanError(
            f"{op}: {elements} elements for sizes {list(found)}",
            expected=f"sizes whose product is {elements}, not {prod(found)}",
            field="operations",
        )
    return found


def target_shape(op: str, chain: Chain, part: int) -> Shape:
    """Give the shape of the parameter that a part becomes; raises PlanError where it is not known."""
    targets = chain.context.targets
    spec = targets[part].spec if part < len(targets) else None
    if spec is None:
        raise PlanError(
            f"{op} takes its sizes from the parameter, which is not known here",
            expected="sizes in the rule, or known parameters",
            hint="give the sizes in the rule, as numbers or config expressions",
            field="operations",
        )
    return spec.shape


def relabel_single(chain: Chain) -> None:
    """One source to one target: the part is the target's from here on."""
    targets = chain.context.targets
    if len(chain.parts) == len(targets) == 1:
        chain.relabel([targets[0].label])
