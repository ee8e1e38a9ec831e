"""MXFP4: codes of 4 bits, and a power of two for 32 of a row.

Source: OCP Microscaling Formats (MX) 1.0, E2M1 and E8M0; two codes a byte, the low nibble first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.codings.block_codes import e2m1_values, e8m0_values
from weightloom.engine.codings.checks import check_matrix, check_part, check_powers
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

GROUP = 32
_BYTES = GROUP // 2


@dataclass(frozen=True, slots=True)
class Mxfp4:
    """Bytes (..., rows, columns / 2), or (..., rows, groups, 16) if `blocks`, and powers (..., rows, groups)."""

    blocks: bool = False
    row_step: int = 1
    exact: bool = True

    def shape(self, specs: Specs) -> Shape:
        """Give the shape of the codes."""
        codes, powers = specs
        check_part("codes", codes, ("U8", "I8"))
        check_matrix("codes", codes)
        rows = codes.shape[:-2] if self.blocks else codes.shape[:-1]
        count = codes.shape[-2] if self.blocks else codes.shape[-1] // _BYTES
        if codes.shape[-1] % _BYTES or (self.blocks and codes.shape[-1] != _BYTES) or len(rows) < 1:
            raise PlanError(f"codes of {codes}", expected=f"groups of {_BYTES} bytes")
        check_part("powers", powers, ("U8", "F8_E8M0"), (*rows, count))
        return (*rows, count * GROUP)

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """Cut both."""
        return arrays[0][start:stop], arrays[1][start:stop]

    def values(self, arrays: Arrays) -> mx.array:
        """Give code times power."""
        codes, powers = arrays
        groups = e2m1_values(codes.reshape(*powers.shape, _BYTES))
        return (groups * e8m0_values(check_powers(powers))[..., None]).reshape(powers.shape[0], -1)

    def kept(self, specs: Specs) -> Specs:
        """Give words and powers."""
        shape = self.shape(specs)
        return TensorSpec("U32", (*shape[:-1], shape[-1] // 8)), TensorSpec("U8", specs[1].shape)

    def keep(self, arrays: Arrays) -> Arrays:
        """Take the bytes as words, in their order."""
        import mlx.core as mx

        codes, powers = arrays
        return codes.reshape(*powers.shape[:-1], -1).view(mx.uint32), check_powers(powers)

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """Take the words as bytes."""
        import mlx.core as mx

        codes = arrays[0].view(mx.int8 if specs[0].dtype == "I8" else mx.uint8)
        return codes.reshape(specs[0].shape), arrays[1]
