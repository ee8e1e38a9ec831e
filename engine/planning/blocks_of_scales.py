"""Weights in blocks with a scale each: which tensors belong together, and where their blocks end.

Names as they are published: `X.weight` with `X.scales` and `X.biases` (MLX), or with `X.weight_scale_inv` or
`X.weight_scale` (FP8, FP4); a stack NAME with `NAME_scales`, `NAME_biases`, `NAME_scale_inv`, `NAME_scale`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.rank_slice import Rows

_BESIDE = (".scales", ".biases", ".global_scale")
_BEHIND = ("_scales", "_biases", "_global_scale", "_scale_inv", "_scale")
_WEIGHT = ".weight"


@dataclass(frozen=True, slots=True)
class Blocks:
    """Along one dim, `count` blocks of `size` rows of a weight; the last one may be shorter.

    One block that is `shared` may be cut anywhere: its scale goes for each part.
    """

    size: int
    count: int
    shared: bool = False

    def covering(self, rows: Rows) -> Rows:
        """Give the blocks that rows lie in."""
        return rows[0] // self.size, -(-rows[1] // self.size)

    def torn(self, rows: Rows, total: int) -> int | None:
        """Give the first row at which cutting off [start, stop) of `total` tears a block; None if all stay whole."""
        if self.shared:
            return None
        return next((row for row in rows if row % self.size and row != total), None)


def is_factor(name: str) -> bool:
    """Say whether a parameter holds factors of whole rows, which stand beside the scales of groups."""
    return name.endswith("global_scale")


def weight_of(name: str, params: Mapping[str, TensorSpec]) -> str:
    """Give the coded weight whose scales (or biases) a parameter holds; the name itself for all others."""
    found = [name.removesuffix(end) + _WEIGHT for end in _BESIDE if name.endswith(end)]
    found += [name.removesuffix(end) for end in _BEHIND if name.endswith(end)]
    return next((weight for weight in found if weight in params and _is_coded(params[weight])), name)


def scales_of(weight: str, params: Mapping[str, TensorSpec]) -> Iterator[str]:
    """Give the parameters that hold scales or biases of a coded weight."""
    if weight not in params or not _is_coded(params[weight]):
        return
    stem = weight.removesuffix(_WEIGHT)
    beside = [stem + end for end in _BESIDE] if stem != weight else []
    yield from (name for name in (*beside, *(weight + end for end in _BEHIND)) if name in params)


def blocks_along(dim: int, weight: TensorSpec, scales: TensorSpec, factor: bool = False) -> Blocks:
    """Give the blocks of a weight along a dim from the shape of its scales; scales that lack the dim are one for all.

    A `factor` is no scale of a group: one goes for each part of a row. Words of packed codes divide evenly. Blocks of
    other codes have 2, 4, 8, ... rows, for the last may be partial.
    Raises PlanError for a shape that no such blocks give.
    """
    total = weight.shape[dim]
    count = scales.shape[dim] if dim < len(scales.shape) else 1
    # A group of words has as many as its bits say: half of it is none.
    words = weight.dtype == "U32" and dim == len(scales.shape) - 1 == len(weight.shape) - 1 and not factor
    if count == 1 or count == total:
        return Blocks(max(total // count, 1), count, shared=count == 1 and not words)
    if weight.dtype == "U32" and count and total % count == 0:
        return Blocks(total // count, count)
    size = 1 << (-(-total // count) - 1).bit_length() if count else 0
    if not count or -(-total // size) != count:
        raise PlanError(
            f"{count} scales along dim {dim} for {total} rows of a weight",
            expected="blocks of one size",
            field="shape",
        )
    return Blocks(size, count)


def _is_coded(spec: TensorSpec) -> bool:
    """Say whether a tensor holds codes: of 8 bits or less, or words of them."""
    return spec.dtype == "U32" or (spec.dtype in DTYPES and DTYPES[spec.dtype].bits <= 8 and spec.dtype != "BOOL")
