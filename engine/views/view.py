"""View: what a tensor is made of, as an index map from source slots; it holds no data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from math import prod

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.tiles import Shape, Tile, fuse, row_major

MAX_TILES = 1 << 18
MAX_DIMS = 64


@dataclass(frozen=True, slots=True)
class View:
    """A tensor of `shape` put together from tiles; every element is in exactly one of them.

    `dtype` is the label of the elements, as in TensorSpec. Reshaping, permuting, cutting and joining views
    is exact: the result reads the same elements as doing it to the arrays. A view that would fall into more
    than MAX_TILES tiles is refused with PlanError.
    """

    dtype: str | None
    shape: Shape
    tiles: tuple[Tile, ...]

    @classmethod
    def identity(cls, slot: int, spec: TensorSpec) -> View:
        """Give the view that is source slot `slot` as it lies in the file, row-major."""
        tiles = () if 0 in spec.shape else (Tile(slot, 0, row_major(spec.shape)),)
        return cls(spec.dtype, spec.shape, tiles)

    @classmethod
    def join(cls, views: Sequence[View], dim: int) -> View:
        """Lay views of one dtype, equal in all other dims, one behind the other along `dim`."""
        first = views[0]
        for view in views[1:]:
            _check_joinable(first, view, dim)
        ends = tuple(accumulate(view.shape[dim] for view in views))
        moved = (
            tile.shifted(dim, start) if start else tile
            for view, start in zip(views, (0, *ends), strict=False)
            for tile in view.tiles
        )
        shape = (*first.shape[:dim], ends[-1], *first.shape[dim + 1 :])
        return cls(first.dtype, shape, _bounded(_fused(moved, dim)))

    def __iter__(self) -> Iterator[Tile]:
        return iter(self.tiles)

    @property
    def spec(self) -> TensorSpec:
        """The dtype and shape."""
        return TensorSpec(self.dtype, self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor, row-major."""
        return self.spec.nbytes

    @property
    def slots(self) -> tuple[int, ...]:
        """The source slots that are read, ascending."""
        return tuple(sorted({tile.slot for tile in self.tiles}))

    def reshape(self, shape: Shape) -> View:
        """Give the same elements in row-major order under another shape of as many elements."""
        if prod(shape) != prod(self.shape) or any(size < 0 for size in shape):
            raise PlanError(
                f"shape {list(self.shape)} does not reshape to {list(shape)}",
                expected=f"{prod(self.shape)} elements, not {prod(shape)}",
            )
        if max(len(shape), len(self.shape)) > MAX_DIMS:
            raise PlanError(f"a reshape of {len(self.shape)} dims to {len(shape)}", expected=f"up to {MAX_DIMS}")
        tiles = (part for tile in self.tiles for part in tile.reshape(self.shape, shape))
        return View(self.dtype, shape, _bounded(tiles))

    def permute(self, axes: Shape) -> View:
        """Put dim `axes[i]` in place i."""
        if sorted(axes) != list(range(len(self.shape))):
            raise PlanError(f"axes {list(axes)} do not reorder the dims of shape {list(self.shape)}")
        shape = tuple(self.shape[dim] for dim in axes)
        return View(self.dtype, shape, tuple(tile.permute(axes) for tile in self.tiles))

    def cut(self, dim: int, start: int, stop: int) -> View:
        """Give rows [start, stop) of one dim."""
        if not (0 <= dim < len(self.shape) and 0 <= start <= stop <= self.shape[dim]):
            raise PlanError(f"[{start}, {stop}) of dim {dim} is not inside shape {list(self.shape)}")
        if (start, stop) == (0, self.shape[dim]):
            return self
        shape = (*self.shape[:dim], stop - start, *self.shape[dim + 1 :])
        tiles = (part for tile in self.tiles for part in tile.cut(dim, start, stop)) if prod(shape) else ()
        return View(self.dtype, shape, _bounded(tiles))

    def rename_slots(self, mapping: Mapping[int, int]) -> View:
        """Give the same view over other slot numbers; a slot that is not in the mapping keeps its own."""
        tiles = (Tile(mapping.get(tile.slot, tile.slot), tile.offset, tile.axes) for tile in self.tiles)
        return View(self.dtype, self.shape, tuple(tiles))


def _check_joinable(first: View, view: View, dim: int) -> None:
    same = view.dtype == first.dtype and len(view.shape) == len(first.shape) and 0 <= dim < len(view.shape)
    if not same or view.shape[:dim] != first.shape[:dim] or view.shape[dim + 1 :] != first.shape[dim + 1 :]:
        raise PlanError(
            f"{view.spec} does not join {first.spec} along dim {dim}",
            expected="the same dtype and the same sizes in all other dims",
        )


def _fused(tiles: Iterable[Tile], dim: int) -> Iterator[Tile]:
    last: Tile | None = None
    for tile in tiles:
        both = None if last is None else fuse(last, tile, dim)
        if last is not None and both is None:
            yield last
        last = tile if both is None else both
    if last is not None:
        yield last


def _bounded(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    kept = tuple(islice(tiles, MAX_TILES + 1))
    if len(kept) > MAX_TILES:
        raise PlanError(
            f"this layout scatters one tensor over more than {MAX_TILES} pieces",
            hint="check the sizes that the rule's ops split and join by",
        )
    return kept
