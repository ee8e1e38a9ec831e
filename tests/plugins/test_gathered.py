"""Tokens times the matrix of a stack that each takes, against NumPy, in every dtype."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.gathered import times_chosen

COUNT, ROWS, COLUMNS = 4, 5, 6


@pytest.mark.parametrize("rows", [[2], [0, 0, 3], [0, 1, 1, 2, 3, 3]], ids=str)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.float16])
def test_values(dtype: mx.Dtype, ordered: bool, rows: list[int]) -> None:
    random = np.random.default_rng(1)
    # Small whole numbers are the same in all three.
    tokens, stack = random.integers(-4, 5, (len(rows), 1, COLUMNS)), random.integers(-4, 5, (COUNT, ROWS, COLUMNS))
    rows = rows if ordered else rows[::-1]
    got = times_chosen(mx.array(tokens).astype(dtype), mx.array(stack).astype(dtype), mx.array(rows), ordered)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.array(got.astype(mx.float32)), tokens @ stack[rows].swapaxes(-1, -2))


def test_the_wider_dtype_of_the_two_comes_out() -> None:
    tokens, stack = mx.ones((1, 1, COLUMNS), mx.float32), mx.ones((COUNT, ROWS, COLUMNS), mx.bfloat16)
    assert times_chosen(tokens, stack, mx.array([1]), ordered=True).dtype == mx.float32
