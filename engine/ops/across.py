"""Lists of tensors over several targets, and back: StackAcross, UnstackAcross."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.chain import Chain
from weightloom.engine.errors import PlanError
from weightloom.engine.ops.base import ConversionOp, axis_of
from weightloom.engine.ops.cutting import check_alike


@dataclass(frozen=True, slots=True)
class StackAcross(ConversionOp):
    """Cut each source's list into equal runs, one a target; a target is the sources' stacked runs, joined.

    k lists of n tensors and m targets: run t of each list (n / m tensors) is stacked with a new axis at
    `stack_dim`, and the k stacks are joined along `concat_dim` of the stack. Raises PlanError where the lists are
    not equally long or the targets do not share them equally.
    """

    stack_dim: int = 0
    concat_dim: int = 1

    def lower(self, chain: Chain) -> None:
        """A new axis on each tensor, the runs put together, and two joins."""
        labels = [target.label for target in chain.context.targets]
        lists, targets = len(chain.parts), len(labels)
        length = _length(chain, targets)
        run = length // targets
        ndim = len(chain.parts[0].specs[0].shape)
        stack = axis_of("StackAcross", self.stack_dim, ndim, new=True)
        join = axis_of("StackAcross", self.concat_dim, ndim + 1)
        for number, part in enumerate(chain.parts):
            for item, spec in enumerate(part.specs):
                chain.reshape(number, item, (*spec.shape[:stack], 1, *spec.shape[stack:]))
        starts = [(label, first * length + t * run) for t, label in enumerate(labels) for first in range(lists)]
        chain.regroup([(label, range(start, start + run)) for label, start in starts])
        for number in range(lists * targets):
            chain.join(number, stack)
        chain.regroup([(label, range(t * lists, (t + 1) * lists)) for t, label in enumerate(labels)])
        for number in range(targets):
            chain.join(number, join)

    def inverse(self) -> UnstackAcross:
        """Take them apart again."""
        return UnstackAcross(self.stack_dim, self.concat_dim)


@dataclass(frozen=True, slots=True)
class UnstackAcross(ConversionOp):
    """Cut each source along `concat_dim`, one piece a target, and unstack it; a target is a list over the sources.

    Raises PlanError where the sources differ or the pieces would not be equal.
    """

    stack_dim: int = 0
    concat_dim: int = 1

    def lower(self, chain: Chain) -> None:
        """Two cuts, the pieces put together by target, and the stacked axis taken off."""
        labels = [target.label for target in chain.context.targets]
        sources, lists = len(chain.parts), len(labels)
        shape = _one_shape(chain)
        stack = axis_of("UnstackAcross", self.stack_dim, len(shape))
        join = axis_of("UnstackAcross", self.concat_dim, len(shape))
        piece = _piece(shape, join, lists)
        run = _run(piece, stack)
        for number in range(sources):
            chain.cut(number, join, (piece[join],) * lists)
        chain.regroup([("", [slot]) for slot in range(sources * lists)])
        for number in range(sources * lists):
            chain.cut(number, stack, (1,) * run)
            for item in range(run):
                chain.reshape(number, item, (*piece[:stack], *piece[stack + 1 :]))
        starts = [[(t * lists + k) * run for t in range(sources)] for k in range(lists)]
        layout = [[start + item for start in found for item in range(run)] for found in starts]
        chain.regroup(list(zip(labels, layout, strict=True)))

    def inverse(self) -> StackAcross:
        """Put them together again."""
        return StackAcross(self.stack_dim, self.concat_dim)


def _length(chain: Chain, targets: int) -> int:
    counts = [len(part.specs) for part in chain.parts]
    if len(set(counts)) > 1 or not counts[0] or counts[0] % targets:
        raise PlanError(
            f"StackAcross: {', '.join(map(str, counts))} tensors for {targets} targets",
            expected="lists of one length that the targets share equally",
            field="operations",
        )
    check_alike("StackAcross", [(spec.dtype, spec.shape) for part in chain.parts for spec in part.specs])
    return counts[0]


def _one_shape(chain: Chain) -> tuple[int, ...]:
    specs = [spec for part in chain.parts for spec in part.specs]
    if len(specs) != len(chain.parts):
        raise PlanError(
            f"UnstackAcross: {len(specs)} tensors of {len(chain.parts)} patterns",
            expected="one tensor a pattern",
            field="operations",
        )
    check_alike("UnstackAcross", [(spec.dtype, spec.shape) for spec in specs])
    return specs[0].shape


def _piece(shape: tuple[int, ...], dim: int, count: int) -> tuple[int, ...]:
    if not count or shape[dim] % count:
        raise PlanError(
            f"UnstackAcross: {shape[dim]} rows along dim {dim} of {list(shape)} for {count} targets",
            expected="a number of rows that the targets share equally",
            field="operations",
        )
    return (*shape[:dim], shape[dim] // count, *shape[dim + 1 :])


def _run(piece: tuple[int, ...], dim: int) -> int:
    if not piece[dim]:
        raise PlanError(
            f"UnstackAcross: no rows along dim {dim} of {list(piece)}",
            expected="one row at least to unstack",
            field="operations",
        )
    return piece[dim]
