"""What an op does to the factors of a change is what it does to the change: its `on_factors` keeps `B @ A`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import share
from weightloom.engine import (
    Chunk,
    Concatenate,
    ConversionOp,
    Interleave,
    MergeModulelist,
    PermuteForRope,
    Rearrange,
    Reshape,
    RuleError,
    Split,
    SplitModulelist,
    TensorSpec,
    Transpose,
)
from weightloom.engine.ops.chain import Chain, OpContext, Part, Target
from weightloom.engine.views.algebra import NumpyAlgebra

Array = np.ndarray[Any, np.dtype[np.int64]]
Parts = list[list[Array]]
CONFIG = {"num_attention_heads": 2, "head_dim": 4, "experts": 3}


@dataclass(frozen=True)
class Case:
    """Ops with the number of source patterns and of targets, each source a list or a single tensor.

    `one_rank`: stacks of other ranks cannot be joined along the experts.
    """

    ops: tuple[ConversionOp, ...]
    sources: int = 1
    targets: int = 1
    listed: bool = False
    one_rank: bool = False


CASES = {
    "experts stacked": Case((MergeModulelist(0),), listed=True),
    "experts stacked, rows joined": Case((MergeModulelist(0), Concatenate(1)), sources=3, listed=True),
    "experts stacked, columns joined": Case((MergeModulelist(0), Concatenate(-1)), sources=2, listed=True),
    "stacks joined": Case((MergeModulelist(-3), Concatenate(0)), sources=2, listed=True, one_rank=True),
    "stacked twice": Case((MergeModulelist(0), MergeModulelist(1)), listed=True),
    "stacked and unstacked": Case((MergeModulelist(0), SplitModulelist(0)), listed=True),
    "rows joined": Case((Concatenate(0),), sources=3),
    "columns joined": Case((Concatenate(1),), sources=2),
    "rows taken apart": Case((Interleave(0),)),
    "columns taken apart": Case((Interleave(1),)),
    "rows put together": Case((Interleave(-2, inverse=True),)),
    "blocks of rows": Case((Rearrange(0, (2, 0, 3, 1)),)),
    "blocks of columns": Case((Rearrange(-1, (1, 0)),)),
    "stack in another order": Case((MergeModulelist(0), Rearrange(0, (1, 0, 2))), listed=True),
    "rows of heads": Case((PermuteForRope(heads=2),)),
    "joined, then turned": Case((Concatenate(0), PermuteForRope(heads=2)), sources=2),
    "stack cut": Case((MergeModulelist(0), Chunk(0)), targets=3, listed=True),
    "stack split": Case((MergeModulelist(0), Split(0, (1, 2))), targets=2, listed=True),
}


def run(ops: Sequence[ConversionOp], arrays: Parts, targets: int) -> list[Array]:
    """Lower ops on arrays and run them; fillers are zeros."""
    parts = [Part(f"s{n}", tuple(TensorSpec("I64", a.shape) for a in part)) for n, part in enumerate(arrays)]
    chain = Chain(parts, OpContext(tuple(Target(f"t{n}") for n in range(targets)), CONFIG))
    for op in ops:
        op.lower(chain)
    program = chain.program()
    flat = [array for part in arrays for array in part]
    fillers = [np.zeros(spec.shape, np.int64) for spec in program.in_specs[len(flat) :]]
    return list(program.apply((*flat, *fillers), NumpyAlgebra()))


def lifted(ops: Sequence[ConversionOp]) -> tuple[list[ConversionOp], list[ConversionOp]]:
    a: list[ConversionOp] = []
    b: list[ConversionOp] = []
    ndim = 2
    for op in ops:
        found = op.on_factors(ndim)
        a, b, ndim = [*a, *found.a], [*b, *found.b], found.ndim
    return a, b


@pytest.mark.parametrize("name", CASES)
def test_the_factors_of_the_result_are_the_results_of_the_factors(name: str) -> None:
    case = CASES[name]

    @share(0.2)
    @given(ranks=st.lists(st.integers(1, 3), min_size=3, max_size=3), seed=st.integers(0, 1 << 30))
    def law(ranks: list[int], seed: int) -> None:
        chance = np.random.default_rng(seed)
        count = 3 if case.listed else 1
        if case.one_rank:
            ranks = ranks[:1] * case.sources

        def some(*shape: int) -> Array:
            return chance.integers(-9, 9, shape)

        a = [[some(ranks[n], 8) for _ in range(count)] for n in range(case.sources)]
        b = [[some(8, ranks[n]) for _ in range(count)] for n in range(case.sources)]
        whole = [[y @ x for x, y in zip(xs, ys, strict=True)] for xs, ys in zip(a, b, strict=True)]
        ops_a, ops_b = lifted(case.ops)
        made = zip(run(ops_b, b, case.targets), run(ops_a, a, case.targets), strict=True)
        wanted = run(case.ops, whole, case.targets)
        assert [(y @ x).tolist() for y, x in made] == [each.tolist() for each in wanted]

    law()


def lifted_on_rows(ops: Sequence[ConversionOp]) -> list[ConversionOp] | None:
    done: list[ConversionOp] = []
    ndim = 2
    for op in ops:
        found = op.on_factors(ndim)
        if found.rows is None:
            return None
        done, ndim = [*done, *found.rows], found.ndim
    return done


@pytest.mark.parametrize("name", CASES)
def test_what_each_row_has_goes_with_it(name: str) -> None:
    """Lengths of rows (DoRA): those of the result are the results of those."""
    case = CASES[name]
    ops = lifted_on_rows(case.ops)
    assert (ops is None) == ("columns joined" in name)

    @share(0.1)
    @given(seed=st.integers(0, 1 << 30))
    def law(seed: int) -> None:
        chance = np.random.default_rng(seed)
        count = 3 if case.listed else 1
        whole = [[chance.integers(-9, 9, (8, 8)) for _ in range(count)] for _ in range(case.sources)]
        squares = [[(each**2).sum(-1) for each in part] for part in whole]
        wanted = run(case.ops, whole, case.targets)
        made = run(ops or (), squares, case.targets)
        assert [each.tolist() for each in made] == [(each**2).sum(-1).tolist() for each in wanted]

    if ops is not None:
        law()


@pytest.mark.parametrize(
    ("ops", "why"),
    [
        ((Chunk(0),), "its parts would share one of them"),
        ((Split(1, (4, 4)),), "its parts would share one of them"),
        ((MergeModulelist(1),), "its new axis is not before the rows"),
        ((MergeModulelist(0), MergeModulelist(0), SplitModulelist(2)), "its axis is one of rows or columns"),
        ((MergeModulelist(0), PermuteForRope(heads=2)), "its rows are those of a matrix"),
        ((Transpose(),), "it does not say how it acts on them"),
        ((Reshape((-1,)),), "it does not say how it acts on them"),
        ((Concatenate(0, "experts"),), "the number of its parts is not that of its patterns"),
    ],
)
def test_what_cannot_be_carried_over_says_why(ops: tuple[ConversionOp, ...], why: str) -> None:
    with pytest.raises(RuleError, match=f"cannot be carried over to the two factors of a low-rank change: {why}"):
        lifted(ops)
