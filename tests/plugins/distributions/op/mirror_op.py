"""An op: dims in the other order."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.ops.base import ConversionOp, relabel_single
from weightloom.engine.ops.chain import Chain


@dataclass(frozen=True, slots=True)
class Mirror(ConversionOp):
    def lower(self, chain: Chain) -> None:
        for number, part in enumerate(chain.parts):
            for item, spec in enumerate(part.specs):
                chain.permute(number, item, tuple(reversed(range(len(spec.shape)))))
        relabel_single(chain)

    def inverse(self) -> Mirror:
        return self
