"""Moves: what does not fit is refused with the wanted and the got size."""

from __future__ import annotations

import pytest

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Cut, Join, Move, Permute, Reorder, Reshape

SPECS = (TensorSpec("F32", (4, 6)), TensorSpec("F32", (2, 6)), TensorSpec("BF16", (2, 6)))


@pytest.mark.parametrize(
    ("move", "text"),
    [
        (Reshape(0, (4, 5), (20,)), r"got shape \[4, 6\]\n  expected: shape \[4, 5\]"),
        (Reshape(0, (4, 6), (5, 5)), r"24 elements, does not reshape to \[5, 5\]\n  expected: 25 elements"),
        (Reshape(0, (4, 6), (-4, -6)), "does not reshape"),
        (Reshape(3, (4, 6), (24,)), "tensor 3\n  expected: one of 3"),
        (Reshape(-1, (4, 6), (24,)), "tensor -1"),
        (Permute(0, (0, 0)), "each dim once"),
        (Permute(0, (0,)), "each dim once"),
        (Cut(0, 0, (2, 3)), r"\[2, 3\] take 5, but dim 0 of F32 \[4, 6\] has 4"),
        (Cut(0, 0, (5, -1)), "add up to 4"),
        (Cut(0, 0, ()), "add up to 4"),
        (Cut(0, 2, (1,)), "dim 2"),
        (Cut(0, -1, (6,)), "dim -1"),
        (Join(0, 1, (6, 6)), r"F32 \[2, 6\] is to be joined along dim 1\n  expected: F32 \[4, 6\]"),
        (Join(0, 0, (4, 3)), r"expected: F32 \[3, 6\]"),
        (Join(1, 0, (2, 2)), r"BF16 \[2, 6\] is to be joined along dim 0\n  expected: F32 \[2, 6\]"),
        (Join(1, 0, (2, 2, 2)), "2 tensors to join\n  expected: 3"),
        (Join(0, 0, ()), "0 tensors to join"),
        (Reorder((0, 1)), "order"),
        (Reorder((0, 1, 1)), "each tensor once"),
    ],
)
def test_a_misfit_is_refused(move: Move, text: str) -> None:
    with pytest.raises(PlanError, match=text):
        move.infer(SPECS)


@pytest.mark.parametrize(
    ("move", "inverse"),
    [
        (Reshape(1, (4, 6), (24,)), Reshape(1, (24,), (4, 6))),
        (Permute(0, (2, 0, 1)), Permute(0, (1, 2, 0))),
        (Cut(2, 1, (1, 2)), Join(2, 1, (1, 2))),
        (Reorder((2, 0, 1)), Reorder((1, 2, 0))),
    ],
)
def test_inverses(move: Move, inverse: Move) -> None:
    assert move.inverse() == inverse
    assert inverse.inverse() == move


def test_inference() -> None:
    assert Cut(0, 1, (1, 5)).infer(SPECS[:1]) == (TensorSpec("F32", (4, 1)), TensorSpec("F32", (4, 5)))
    assert Join(0, 0, (4, 2)).infer(SPECS) == (TensorSpec("F32", (6, 6)), SPECS[2])
    assert Reshape(1, (2, 6), (12, 1)).infer(SPECS)[1] == TensorSpec("F32", (12, 1))


def test_widening_a_reorder_leaves_the_others_in_place() -> None:
    assert Reorder((1, 0)).widen(2, 1) == Reorder((0, 1, 3, 2, 4))
    assert Join(0, 0, (4, 2)).widen(2, 1) == Join(2, 0, (4, 2))
