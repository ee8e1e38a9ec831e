"""Lists of tensors over several targets, and back: StackAcross, UnstackAcross."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weightloom.engine.errors import PlanError
from weightloom.engine.ops.alike import check_alike
from weightloom.engine.ops.base import ConversionOp, axis_of
from weightloom.engine.ops.chain import Chain
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.tiles import Shape


@dataclass(frozen=True, slots=True)
class StackAcross(ConversionOp):
    """Cut each source's list into equal runs, one a target; a target is the sources' stacked runs, joined.

    k lists of n tensors and m targets: run t of each list (n / m tensors) is stacked with a new axis at
    `stack_dim`, and the k stacks are joined along `concat_dim` of the stack. Tensors of one target are alike, those
    of two need not be. Raises PlanError where the lists are not equally long, the targets do not share them equally,
    or the tensors of a target differ.
    """

    stack_dim: int = 0
    concat_dim: int = 1

    def lower(self, chain: Chain) -> None:
        """A new axis on each tensor, the runs put together, and two joins."""
        labels = [target.label for target in chain.context.targets]
        lists, targets = len(chain.parts), len(labels)
        length = _length(chain, targets)
        run = length // targets
        shapes = [_one_shape(_run_of(chain, t, run)) for t in range(targets)]
        stacks = [axis_of("StackAcross", self.stack_dim, len(shape), new=True) for shape in shapes]
        joins = [axis_of("StackAcross", self.concat_dim, len(shape) + 1) for shape in shapes]
        for number in range(lists):
            for item in range(length):
                t = item // run
                chain.reshape(number, item, (*shapes[t][: stacks[t]], 1, *shapes[t][stacks[t] :]))
        starts = [(label, first * length + t * run) for t, label in enumerate(labels) for first in range(lists)]
        chain.regroup([(label, range(start, start + run)) for label, start in starts])
        for number in range(lists * targets):
            chain.join(number, stacks[number // lists])
        chain.regroup([(label, range(t * lists, (t + 1) * lists)) for t, label in enumerate(labels)])
        for number in range(targets):
            chain.join(number, joins[number])

    def inverse(self) -> UnstackAcross:
        """Take them apart again."""
        return UnstackAcross(self.stack_dim, self.concat_dim)


@dataclass(frozen=True, slots=True)
class UnstackAcross(ConversionOp):
    """Cut each source along `concat_dim`, one piece a target, and unstack it; a target is a list over the sources.

    Raises PlanError where the pieces of a source would not be equal, or the sources do not hold equally many.
    """

    stack_dim: int = 0
    concat_dim: int = 1

    def lower(self, chain: Chain) -> None:
        """Two cuts, the pieces put together by target, and the stacked axis taken off."""
        labels = [target.label for target in chain.context.targets]
        sources, lists = len(chain.parts), len(labels)
        shapes = _shapes(chain)
        stacks = [axis_of("UnstackAcross", self.stack_dim, len(shape)) for shape in shapes]
        joins = [axis_of("UnstackAcross", self.concat_dim, len(shape)) for shape in shapes]
        pieces = [_piece(shape, join, lists) for shape, join in zip(shapes, joins, strict=True)]
        run = _run([piece[stack] for piece, stack in zip(pieces, stacks, strict=True)])
        for number in range(sources):
            chain.cut(number, joins[number], (pieces[number][joins[number]],) * lists)
        chain.regroup([("", [slot]) for slot in range(sources * lists)])
        for number in range(sources * lists):
            piece, stack = pieces[number // lists], stacks[number // lists]
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
    return counts[0]


def _run_of(chain: Chain, target: int, run: int) -> list[TensorSpec]:
    return [spec for part in chain.parts for spec in part.specs[target * run : (target + 1) * run]]


def _one_shape(specs: Iterable[TensorSpec]) -> Shape:
    listed = list(specs)
    check_alike("StackAcross", [(spec.dtype, spec.shape) for spec in listed])
    return listed[0].shape


def _shapes(chain: Chain) -> list[Shape]:
    specs = [spec for part in chain.parts for spec in part.specs]
    if len(specs) != len(chain.parts):
        raise PlanError(
            f"UnstackAcross: {len(specs)} tensors of {len(chain.parts)} patterns",
            expected="one tensor a pattern",
            field="operations",
        )
    return [spec.shape for spec in specs]


def _piece(shape: Shape, dim: int, count: int) -> Shape:
    if not count or shape[dim] % count:
        raise PlanError(
            f"UnstackAcross: {shape[dim]} rows along dim {dim} of {list(shape)} for {count} targets",
            expected="a number of rows that the targets share equally",
            field="operations",
        )
    return (*shape[:dim], shape[dim] // count, *shape[dim + 1 :])


def _run(counts: list[int]) -> int:
    if len(set(counts)) > 1 or not counts[0]:
        raise PlanError(
            f"UnstackAcross: {', '.join(map(str, counts))} tensors stacked in the sources",
            expected="equally many in each, one at least",
            field="operations",
        )
    return counts[0]
