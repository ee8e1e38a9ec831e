"""Matrices as the blocks of one that is zero elsewhere, and back: BlockDiagonal, CutDiagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weightloom.engine.errors import PlanError
from weightloom.engine.ops.alike import check_alike
from weightloom.engine.ops.base import Amount, ConversionOp, amount, frozen_sizes
from weightloom.engine.ops.chain import Chain
from weightloom.engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class BlockDiagonal(ConversionOp):
    """Put all matrices, the last two dims, along the diagonal of one; zeros elsewhere, which must stay zeros.

    Dims before the last two are shared. `rows` and `columns`, numbers or config expressions, are for the way back of
    what was never loaded; by default the blocks are of one size.
    """

    rows: tuple[Amount, ...] | None = None
    columns: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", frozen_sizes(self.rows))
        object.__setattr__(self, "columns", frozen_sizes(self.columns))

    def lower(self, chain: Chain) -> None:
        """Each block between fillers along its rows, and a join of all."""
        specs = tuple(spec for part in chain.parts for spec in part.specs)
        columns = [_matrix("BlockDiagonal", spec)[1] for spec in specs]
        check_alike("BlockDiagonal", [(spec.dtype, spec.shape[:-2]) for spec in specs])
        chain.regroup([("", [slot]) for slot in range(len(specs))])
        widths = [(sum(columns[:n]), sum(columns[n + 1 :])) for n in range(len(specs))]
        for number, (spec, sides) in enumerate(zip(specs, widths, strict=True)):
            for width in filter(None, sides):
                chain.fill(number, TensorSpec(spec.dtype, (*spec.shape[:-1], width)))
        chain.regroup([("", _between(chain, number, left > 0)) for number, (left, _) in enumerate(widths)])
        ndim = len(specs[0].shape)
        for number in range(len(specs)):
            chain.join(number, ndim - 1)
        labels = chain.context.targets
        chain.gather_parts(labels[0].label if labels else "")
        chain.join(0, ndim - 2)

    def inverse(self) -> CutDiagonal:
        """Cut the blocks out."""
        return CutDiagonal(self.rows, self.columns)


@dataclass(frozen=True, slots=True)
class CutDiagonal(ConversionOp):
    """Cut the blocks along the diagonal out of a matrix, one a target; what is beside them is saved back as it was.

    `rows` and `columns` are the blocks' sizes, numbers or config expressions; by default the blocks are of one size.
    Raises PlanError where they do not add up.
    """

    rows: tuple[Amount, ...] | None = None
    columns: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", frozen_sizes(self.rows))
        object.__setattr__(self, "columns", frozen_sizes(self.columns))

    def lower(self, chain: Chain) -> None:
        """A cut into rows of blocks, and of each a cut whose outer parts are remainders."""
        spec = chain.only("CutDiagonal")
        height, width = _matrix("CutDiagonal", spec)
        labels = [target.label for target in chain.context.targets]
        rows = _sizes(chain, self.rows, height, len(labels))
        columns = _sizes(chain, self.columns, width, len(labels))
        ndim = len(spec.shape)
        chain.cut(0, ndim - 2, rows)
        chain.regroup([(label, [slot]) for slot, label in enumerate(labels)])
        for number, size in enumerate(columns):
            left, right = sum(columns[:number]), sum(columns[number + 1 :])
            chain.cut(number, ndim - 1, _present(left, size, right))
            if left:
                chain.keep(number, 0)
            if right:
                chain.keep(number, 1)

    def inverse(self) -> BlockDiagonal:
        """Put the blocks back, between zeros."""
        return BlockDiagonal(self.rows, self.columns)


def _matrix(op: str, spec: TensorSpec) -> tuple[int, int]:
    if len(spec.shape) < 2:
        raise PlanError(f"{op}: a tensor of {list(spec.shape)}", expected="two dims at least", field="operations")
    return spec.shape[-2], spec.shape[-1]


def _between(chain: Chain, number: int, moved: bool) -> list[int]:
    """Give the flat numbers of a block and its fillers, the first filler put before the block."""
    start = chain.slot(number, 0)
    found = list(range(start, start + len(chain.parts[number].specs)))
    return [found[1], found[0], *found[2:]] if moved else found


def _sizes(chain: Chain, given: Sequence[Amount] | None, total: int, count: int) -> tuple[int, ...]:
    known = None if given is None else tuple(amount("CutDiagonal", size, chain.context.config) for size in given)
    sizes = (total // count,) * count if known is None else known
    if len(sizes) != count or sum(sizes) != total:
        raise PlanError(
            f"CutDiagonal: {total} rows or columns for {count} blocks of {', '.join(map(str, sizes))}",
            expected=f"a size for each target, {total} in all",
            hint="give `rows` and `columns` in the rule",
            field="operations",
        )
    return sizes


def _present(left: int, size: int, right: int) -> tuple[int, ...]:
    """Leave out what is not there beside a block; the block may be empty."""
    return (*filter(None, (left,)), size, *filter(None, (right,)))
