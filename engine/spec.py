"""TensorSpec: what is known of a tensor without its data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from weightloom.engine.dtypes import byte_length


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor's dtype (as safetensors spells it), logical shape, and place on disk if it has one.

    `dtype` None, in a parameter's spec, means "whatever the file has". `offset` is in bytes from the
    start of `file`. A sub-byte dtype (F4, F6) has its logical shape here: F4 `(2, 8)` takes 8 bytes.
    """

    dtype: str | None = None
    shape: tuple[int, ...] = ()
    file: Path | None = None
    offset: int | None = None

    def __post_init__(self) -> None:
        # A checkpoint has tens of thousands of these: most shapes are as they should be.
        if type(self.shape) is tuple:
            for size in self.shape:
                if type(size) is not int:
                    break
            else:
                return
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of data; 0 while the dtype is open."""
        return 0 if self.dtype is None else (byte_length(self.dtype, self.shape) or 0)

    def logical(self) -> TensorSpec:
        """Give the same dtype and shape without a place on disk."""
        return self if self.file is None else replace(self, file=None, offset=None)

    def __str__(self) -> str:
        return f"{self.dtype or 'any dtype'} {list(self.shape)}"
