"""The same bytes as elements of another width: BitView."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import RuleError
from weightloom.engine.ops.base import ConversionOp, relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.engine.steps.viewing_step import Reinterpret


@dataclass(frozen=True, slots=True)
class BitView(ConversionOp):
    """Read the bytes of each tensor, of dtype `old`, as dtype `new`, both as safetensors spells them.

    The last dim grows or shrinks with the width of an element: eight codes of 4 bits are one U32 or four U8, low
    bits first. Raises RuleError for a dtype that MLX has no type of the same width for, PlanError for a tensor of
    another dtype or whose last dim does not make whole elements.
    """

    needs_real_shapes: ClassVar[bool] = True

    old: str
    new: str

    def __post_init__(self) -> None:
        known = [name for name, dtype in DTYPES.items() if dtype.mlx and dtype.kind in ("int", "float")]
        for dtype in (self.old, self.new):
            if dtype not in known:
                raise RuleError(f"BitView of dtype {dtype!r}", expected=f"one of {', '.join(known)}", field="dtype")

    def lower(self, chain: Chain) -> None:
        """One value step a tensor."""
        for number, part in enumerate(chain.parts):
            for item in range(len(part.specs)):
                chain.value(Reinterpret(chain.slot(number, item), self.old, self.new), number, item)
        relabel_single(chain)

    def inverse(self) -> BitView:
        """Read them as before."""
        return BitView(self.new, self.old)
