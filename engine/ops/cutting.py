"""One tensor to several along an axis, and back: Chunk, Split, Concatenate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from weightloom.engine.errors import PlanError
from weightloom.engine.ops.alike import check_alike
from weightloom.engine.ops.base import (
    Amount,
    ConversionOp,
    OnFactors,
    amount,
    axis_of,
    frozen_sizes,
    not_on_factors,
)
from weightloom.engine.ops.chain import Chain
from weightloom.engine.ops.diagonal import BlockDiagonal


@dataclass(frozen=True, slots=True)
class Chunk(ConversionOp):
    """Cut a tensor into equal parts along `dim`: one for each target, or as many as a config field says.

    With `num_shards_attribute` the parts are numbered by the target's star. Raises PlanError when the parts
    would not be equal.
    """

    dim: int = 0
    num_shards_attribute: str | None = None

    def lower(self, chain: Chain) -> None:
        """One cut."""
        spec = chain.only("Chunk")
        dim = axis_of("Chunk", self.dim, len(spec.shape))
        count = _count("Chunk", self.num_shards_attribute, chain)
        if count == 0 or spec.shape[dim] % count:
            raise PlanError(
                f"Chunk: {spec.shape[dim]} rows along dim {dim} of {list(spec.shape)} for {count} parts",
                expected="a number of rows that the parts share equally",
                hint="use Split where the parts differ in size",
                field="operations",
            )
        _cut(chain, dim, (spec.shape[dim] // count,) * count, listed=self.num_shards_attribute is not None)

    def inverse(self) -> Concatenate:
        """Concatenate."""
        return Concatenate(self.dim, self.num_shards_attribute)

    def on_factors(self, ndim: int) -> OnFactors:
        """Cut both along a dim before the rows."""
        return _cut_on_factors(self, self.dim, ndim)


@dataclass(frozen=True, slots=True)
class Split(ConversionOp):
    """Cut a tensor along `dim` into parts of the given sizes, one for each target.

    A size is a number or a config expression. Without sizes each part is as large as its target parameter.
    Raises PlanError when the sizes are unknown or do not add up.
    """

    dim: int = 0
    sizes: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", frozen_sizes(self.sizes))

    def lower(self, chain: Chain) -> None:
        """One cut."""
        spec = chain.only("Split")
        dim = axis_of("Split", self.dim, len(spec.shape))
        _cut(chain, dim, self._sizes(chain, spec.shape[dim], dim), listed=False)

    def inverse(self) -> Concatenate:
        """Concatenate, remembering the sizes."""
        return Concatenate(self.dim, sizes="targets" if self.sizes is None else self.sizes)

    def on_factors(self, ndim: int) -> OnFactors:
        """Cut both along a dim before the rows."""
        return _cut_on_factors(self, self.dim, ndim)

    def _sizes(self, chain: Chain, rows: int, dim: int) -> tuple[int, ...]:
        targets = chain.context.targets
        if self.sizes is not None:
            sizes = tuple(amount("Split", size, chain.context.config) for size in self.sizes)
        else:
            sizes = tuple(
                target.spec.shape[dim] for target in targets if target.spec is not None and len(target.spec.shape) > dim
            )
        if len(sizes) != len(targets):
            raise PlanError(
                f"Split knows {len(sizes)} sizes for {len(targets)} targets",
                expected="a size for each target, from the rule, the config or the parameters",
                hint="give `sizes` in the rule",
                field="operations",
            )
        if sum(sizes) != rows:
            raise PlanError(
                f"Split: {rows} rows along dim {dim} for parts of {', '.join(map(str, sizes))}",
                expected=f"parts that add up to {rows}, not {sum(sizes)}",
                field="operations",
            )
        return sizes


@dataclass(frozen=True, slots=True)
class Concatenate(ConversionOp):
    """Join all tensors along `dim`, in the order of the source patterns (a starred one by its numbers).

    `sizes` is for the way back when the model was never loaded: "targets" takes them from the parameters.
    """

    dim: int = 0
    num_shards_attribute: str | None = None
    sizes: tuple[Amount, ...] | Literal["targets"] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.sizes != "targets":
            object.__setattr__(self, "sizes", frozen_sizes(self.sizes))

    def lower(self, chain: Chain) -> None:
        """One join."""
        labels = chain.context.targets
        chain.gather_parts(labels[0].label if labels else "")
        specs = chain.parts[0].specs
        dim = axis_of("Concatenate", self.dim, len(specs[0].shape))
        check_alike("Concatenate", [(spec.dtype, (*spec.shape[:dim], *spec.shape[dim + 1 :])) for spec in specs])
        chain.join(0, dim)

    def inverse(self) -> Chunk | Split:
        """Chunk for equal parts; Split where the sizes are known."""
        if self.sizes == "targets":
            return Split(self.dim)
        if self.sizes is not None:
            return Split(self.dim, self.sizes)
        return Chunk(self.dim, self.num_shards_attribute)

    def on_factors(self, ndim: int) -> OnFactors:
        """Join both along a dim before the rows; else one of them, and the other block by block: ranks add up.

        [W1; W2] + [B1 A1; B2 A2] is [W1; W2] + [[B1, 0], [0, B2]] @ [A1; A2], and so for columns.
        """
        sizes = None if self.sizes == "targets" else self.sizes
        dim = axis_of("Concatenate", self.dim, ndim)
        if self.num_shards_attribute is not None and dim >= ndim - 2:
            raise not_on_factors(self, "the number of its parts is not that of its patterns")
        rows = (replace(self, dim=dim, sizes=sizes),)
        if dim == ndim - 2:
            return OnFactors((Concatenate(-2),), (BlockDiagonal(rows=sizes),), ndim, rows)
        if dim == ndim - 1:
            return OnFactors((BlockDiagonal(columns=sizes),), (Concatenate(-1),), ndim)
        return OnFactors((self,), (self,), ndim, rows)


def _cut_on_factors(op: Chunk | Split, dim: int, ndim: int) -> OnFactors:
    axis = axis_of(type(op).__name__, dim, ndim)
    if axis >= ndim - 2:
        raise not_on_factors(op, "its parts would share one of them")
    return OnFactors((op,), (op,), ndim, (replace(op, dim=axis),))


def _count(op: str, attribute: str | None, chain: Chain) -> int:
    return len(chain.context.targets) if attribute is None else amount(op, attribute, chain.context.config)


def _cut(chain: Chain, dim: int, sizes: tuple[int, ...], *, listed: bool) -> None:
    chain.cut(0, dim, sizes)
    labels = [target.label for target in chain.context.targets]
    if listed:
        chain.relabel(labels[:1])
    else:
        chain.spread_part(labels)
