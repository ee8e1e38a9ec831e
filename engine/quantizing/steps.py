"""The value steps between a float matrix, or a stack of them, and MLX's packed form: some rows at a time.

Rows are packed apart from each other, so that blocks of rows give the same words as the whole. MLX holds up to 20 times
the numbers of a matrix while it looks for codes of 4 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.quantizing.checked import check_scales
from weightloom.engine.quantizing.quantization import AFFINE, Quantization
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

    Arrays = tuple[mx.array, ...]

FLOATS = ("F32", "BF16", "F16")
_AT_ONCE = 1 << 18
_BYTES_EACH = 80


@dataclass(frozen=True, slots=True)
class Pack:
    """Slot `at`, floats (..., rows, columns) of `taken`, to words, scales and, in affine mode, biases."""

    at: int
    how: Quantization
    taken: Specs
    arity: int = 1

    @property
    def beside_bytes(self) -> int:
        """Bytes that MLX holds while it packs some rows."""
        return _scratch(self.taken[0].shape)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs of the parts; PlanError for what is no float matrix, or does not divide into groups."""
        if specs[0].dtype not in FLOATS or not self.how.fits(specs[0].shape):
            raise PlanError(
                f"{specs[0]} to {self.how}",
                expected=f"{', '.join(FLOATS)}, in rows that divide into groups of {self.how.group_size}",
                field="group_size",
            )
        return self.how.packed(specs[0])

    def apply(self, arrays: Arrays) -> Arrays:
        """Pack some rows after the other."""
        import mlx.core as mx

        how = self.how
        return _by_rows(arrays, arrays[0].shape, lambda part: mx.quantize(part[0], how.group_size, how.bits, how.mode))

    def inverse(self) -> Pack:
        """Raise NotInvertible: what was packed is rounded."""
        raise NotInvertible(
            f"quantizing rounds to {self.how}",
            expected="a plan that does not quantize",
            hint='save in a named layout, such as "mlx": that is a new checkpoint',
        )


@dataclass(frozen=True, slots=True)
class Unpack:
    """Slots `at` on, words, scales and, in affine mode, biases of `taken` specs, to the floats that they stand for.

    In affine mode they are of the dtype of the scales, else BF16.
    """

    at: int
    how: Quantization
    taken: Specs

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.taken)

    @property
    def beside_bytes(self) -> int:
        """Bytes that MLX holds while it unpacks some rows."""
        return _scratch(self._shape)

    @property
    def _shape(self) -> tuple[int, ...]:
        scales = self.taken[1].shape
        return (*scales[:-1], scales[-1] * self.how.group_size)

    def infer(self, specs: Specs) -> Specs:
        """Give the spec of the floats; PlanError for parts that do not belong together."""
        made = TensorSpec(specs[1].dtype if self.how.mode == AFFINE else "BF16", self._shape)
        # The dtype of scales says nothing of the floats in a block mode, and FP8 codes may go by their own name.
        wanted = [spec.shape for spec in self.how.packed(made)]
        if [spec.shape for spec in specs] != wanted or made.dtype not in FLOATS:
            raise PlanError(f"{', '.join(map(str, specs))} as {self.how}", expected="parts of one packed matrix")
        return (made,)

    def apply(self, arrays: Arrays) -> Arrays:
        """Unpack some rows after the other."""
        import mlx.core as mx

        how, made = self.how, self.infer(self.taken)[0]
        dtype = getattr(mx, DTYPES[made.dtype or ""].mlx or "")

        for each in arrays[1:]:
            check_scales(each, how.mode)

        def floats(part: Arrays) -> Arrays:
            words, scales, *rest = part
            bias = rest[0] if rest else None
            return (mx.dequantize(words, scales, bias, how.group_size, how.bits, how.mode).astype(dtype),)

        return _by_rows(arrays, made.shape, floats)

    def inverse(self) -> Restore:
        """The source's own bytes."""
        return Restore(self.at, self, self.taken, self.infer(self.taken))


def _by_rows(arrays: Arrays, shape: tuple[int, ...], make: Callable[[Arrays], Arrays | list[mx.array]]) -> Arrays:
    """Make something of some rows of all arrays after the other; `shape` is that of the floats."""
    import mlx.core as mx

    flat = [array.reshape(-1, array.shape[-1]) for array in arrays]
    count, step = prod(shape[:-1]), _rows_at_once(shape)
    pieces: list[Arrays] = []
    for row in range(0, count, step):
        made = tuple(make(tuple(array[row : row + step] for array in flat)))
        # Else MLX would hold what it computes with for all rows at once.
        mx.eval(*made)
        pieces.append(made)
    columns = zip(*pieces, strict=True)
    return tuple(mx.concatenate(list(each)).reshape(*shape[:-1], each[0].shape[-1]) for each in columns)


def _rows_at_once(shape: tuple[int, ...]) -> int:
    return max(1, _AT_ONCE // max(shape[-1], 1))


def _scratch(shape: tuple[int, ...]) -> int:
    return _BYTES_EACH * min(_rows_at_once(shape) * shape[-1], prod(shape))
