"""The value steps on quantized matrices: to floats, to codes that MLX has, or to MLX's form of the same numbers.

A stack goes matrix by matrix, a matrix by some of its rows, so that F32 numbers of a few MiB are all that is held
beside what is taken and made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from weightloom.engine.codings.coding import Arrays, Coding, Native
from weightloom.engine.codings.loss import Loss
from weightloom.engine.codings.mxfp8_codes import GROUP, to_mxfp8
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

_SCRATCH = 4 << 20


@dataclass(frozen=True, slots=True)
class Decode:
    """Slots `at` on, the tensors of `coding`, to one of `dtype`: computed in F32, rounded once."""

    at: int
    coding: Coding
    dtype: str
    taken: Specs

    @property
    def arity(self) -> int:
        """As many as the coding has."""
        return len(self.taken)

    def infer(self, specs: Specs) -> Specs:
        """Give floats of the matrix's shape."""
        return (TensorSpec(self.dtype, self.coding.shape(specs)),)

    def apply(self, arrays: Arrays) -> Arrays:
        """Decode some rows after the other."""
        import mlx.core as mx

        wanted = getattr(mx, DTYPES[self.dtype].mlx or "")
        return _put_together(self.taken, self.coding, arrays, lambda part: (self.coding.values(part).astype(wanted),))

    def inverse(self) -> Restore:
        """The source's own bytes."""
        return Restore(self.at, self, self.taken, self.infer(self.taken))


@dataclass(frozen=True, slots=True)
class ToMxfp8:
    """Slots `at` on, the tensors of `coding`, to MXFP8: words (..., columns / 4) and powers (..., columns / 32)."""

    at: int
    coding: Coding
    taken: Specs

    @property
    def arity(self) -> int:
        """As many as the coding has."""
        return len(self.taken)

    def infer(self, specs: Specs) -> Specs:
        """Give U32 and U8; PlanError for rows that do not divide into groups."""
        shape = self.coding.shape(specs)
        if shape[-1] % GROUP:
            raise PlanError(
                f"rows of {shape[-1]} numbers", expected=f"a multiple of {GROUP}, for MXFP8", hint="load it dequantized"
            )
        return TensorSpec("U32", (*shape[:-1], shape[-1] // 4)), TensorSpec("U8", (*shape[:-1], shape[-1] // GROUP))

    def apply(self, arrays: Arrays) -> Arrays:
        """Decode and code anew, some rows after the other."""
        return _put_together(self.taken, self.coding, arrays, lambda part: to_mxfp8(self.coding.values(part)))

    def loss(self, taken: Arrays, made: Arrays) -> Loss:
        """Measure how far the new codes are from the old ones, by MLX's own decoding."""
        import mlx.core as mx

        codes, powers = (array.reshape(-1, array.shape[-1]) for array in made)
        found, start = Loss(), 0
        for part in _parts(self.taken, self.coding, taken):
            old = self.coding.values(part)
            stop = start + old.shape[0]
            new = mx.dequantize(codes[start:stop], powers[start:stop], mode="mxfp8", dtype=mx.float32)
            found, start = found + Loss.between(old, new), stop
        return found

    def inverse(self) -> Restore:
        """The source's own bytes."""
        return Restore(self.at, self, self.taken, self.infer(self.taken))


@dataclass(frozen=True, slots=True)
class KeepCodes:
    """Slots `at` on, the tensors of `coding`, to those in which MLX has the same numbers."""

    at: int
    coding: Native
    taken: Specs

    @property
    def arity(self) -> int:
        """As many as the coding has."""
        return len(self.taken)

    def infer(self, specs: Specs) -> Specs:
        """Give MLX's tensors."""
        return self.coding.kept(specs)

    def apply(self, arrays: Arrays) -> Arrays:
        """Put the codes in MLX's order."""
        return self.coding.keep(arrays)

    def inverse(self) -> FromKept | Restore:
        """The coding's own way back, else the source's own bytes."""
        if self.coding.exact:
            return FromKept(self.at, self.coding, self.taken)
        return Restore(self.at, self, self.taken, self.infer(self.taken))


@dataclass(frozen=True, slots=True)
class FromKept:
    """Slots `at` on, MLX's tensors of an exact `coding`, to the stored ones, of `made` specs."""

    at: int
    coding: Native
    made: Specs

    @property
    def arity(self) -> int:
        """As many as MLX has."""
        return len(self.coding.kept(self.made))

    def infer(self, specs: Specs) -> Specs:
        """Give the stored specs; PlanError for tensors that are not MLX's."""
        wanted = self.coding.kept(self.made)
        if specs != wanted:
            raise PlanError(f"packed tensors are {', '.join(map(str, specs))}", expected=", ".join(map(str, wanted)))
        return self.made

    def apply(self, arrays: Arrays) -> Arrays:
        """Put the codes in the file's order."""
        return self.coding.back(arrays, self.made)

    def inverse(self) -> KeepCodes:
        """Put them in MLX's order."""
        return KeepCodes(self.at, self.coding, self.made)


def _put_together(specs: Specs, coding: Coding, arrays: Arrays, make: Callable[[Arrays], Arrays]) -> Arrays:
    import mlx.core as mx

    shape = coding.shape(specs)
    pieces: list[Arrays] = []
    for part in _parts(specs, coding, arrays):
        made = make(part)
        # Else MLX would hold the F32 numbers of all rows at once.
        mx.eval(*made)
        pieces.append(made)
    columns = zip(*pieces, strict=True)
    return tuple(mx.concatenate(list(each)).reshape(*shape[:-1], each[0].shape[-1]) for each in columns)


def _parts(specs: Specs, coding: Coding, arrays: Arrays) -> Iterator[Arrays]:
    """Give the tensors of some rows after the other, matrix by matrix."""
    shape = coding.shape(specs)
    rows = _rows_at_once(shape, coding.row_step)
    for matrix in _matrices(shape, arrays):
        yield from (coding.rows(matrix, row, min(row + rows, shape[-2])) for row in range(0, shape[-2], rows))


def _rows_at_once(shape: Shape, step: int) -> int:
    return max(1, _SCRATCH // (4 * shape[-1] * step)) * step


def _matrices(shape: Shape, arrays: Arrays) -> Iterator[Arrays]:
    ahead = shape[:-2]
    if not ahead:
        yield arrays
        return
    flat = [array.reshape(prod(ahead), *array.shape[len(ahead) :]) for array in arrays]
    yield from (tuple(array[number] for array in flat) for number in range(prod(ahead)))
