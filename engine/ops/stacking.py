"""A list of tensors to one with a new axis, and back: MergeModulelist, SplitModulelist."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.ops.alike import check_alike
from weightloom.engine.ops.base import ConversionOp, OnFactors, axis_of, not_on_factors
from weightloom.engine.ops.chain import Chain


@dataclass(frozen=True, slots=True)
class MergeModulelist(ConversionOp):
    """Stack each pattern's tensors, n of one shape, into one with a new axis of length n at `dim`."""

    dim: int = 0

    def lower(self, chain: Chain) -> None:
        """A new axis of one on each tensor, then a join along it."""
        for number, part in enumerate(chain.parts):
            dim = axis_of("MergeModulelist", self.dim, len(part.specs[0].shape), new=True)
            check_alike("MergeModulelist", [(spec.dtype, spec.shape) for spec in part.specs])
            for item, spec in enumerate(part.specs):
                chain.reshape(number, item, (*spec.shape[:dim], 1, *spec.shape[dim:]))
            chain.join(number, dim)
        targets = chain.context.targets
        if len(chain.parts) == len(targets):
            chain.relabel([target.label for target in targets])

    def inverse(self) -> SplitModulelist:
        """Unstack."""
        return SplitModulelist(self.dim)

    def on_factors(self, ndim: int) -> OnFactors:
        """Stack both, if the new axis comes before rows and columns."""
        dim = axis_of("MergeModulelist", self.dim, ndim, new=True)
        if dim > ndim - 2:
            raise not_on_factors(self, "its new axis is not before the rows")
        stack = MergeModulelist(dim)
        return OnFactors((stack,), (stack,), ndim + 1, (stack,))


@dataclass(frozen=True, slots=True)
class SplitModulelist(ConversionOp):
    """Unstack: one tensor becomes as many as the axis `dim` is long, and that axis goes away."""

    dim: int = 0

    def lower(self, chain: Chain) -> None:
        """A cut into rows of one, then each without that axis."""
        for number, part in enumerate(chain.parts):
            shape = part.specs[0].shape
            dim = axis_of("SplitModulelist", self.dim, len(shape))
            chain.cut(number, dim, (1,) * shape[dim])
            for item in range(shape[dim]):
                chain.reshape(number, item, (*shape[:dim], *shape[dim + 1 :]))
        targets = chain.context.targets
        if len(chain.parts) == len(targets):
            chain.relabel([target.label for target in targets])

    def inverse(self) -> MergeModulelist:
        """Stack."""
        return MergeModulelist(self.dim)

    def on_factors(self, ndim: int) -> OnFactors:
        """Unstack both, if the axis is before rows and columns."""
        dim = axis_of("SplitModulelist", self.dim, ndim)
        if dim >= ndim - 2:
            raise not_on_factors(self, "its axis is one of rows or columns")
        unstack = SplitModulelist(dim)
        return OnFactors((unstack,), (unstack,), ndim - 1, (unstack,))
