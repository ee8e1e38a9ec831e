"""Cutting sequences into chunks, and inverting triangular matrices."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.chunks import (
    chunk_size,
    decayed_products,
    in_chunks,
    inverse_of_unit_lower,
    until_the_end,
)


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_an_inverse_undoes_the_matrix(size: int) -> None:
    random = np.random.default_rng(size)
    lower = np.tril(random.standard_normal((2, 3, size, size)) / size, -1) + np.eye(size)
    inverse = np.array(inverse_of_unit_lower(mx.array(lower.astype(np.float32))))
    np.testing.assert_allclose(inverse @ lower, np.broadcast_to(np.eye(size), lower.shape), atol=1e-5)


def test_matrices_whose_powers_overflow_are_inverted() -> None:
    lower = np.tril(np.ones((64, 64)))
    wanted = np.eye(64) - np.eye(64, k=-1)
    np.testing.assert_array_equal(np.array(inverse_of_unit_lower(mx.array(lower.astype(np.float32)))), wanted)


def test_chunks_hold_all_and_are_filled_up_with_nothing() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 10, 4)).astype(np.float32)
    chunks = np.array(in_chunks(mx.array(x), 4))
    assert chunks.shape == (2, 3, 3, 4, 4)
    np.testing.assert_array_equal(chunks.reshape(2, 3, 12, 4)[:, :, :10], x)
    assert not chunks.reshape(2, 3, 12, 4)[:, :, 10:].any()


@pytest.mark.parametrize(("length", "size"), [(1, 1), (2, 2), (3, 4), (33, 64), (64, 64), (1000, 64)])
def test_a_chunk_is_no_longer_than_it_must(length: int, size: int) -> None:
    assert chunk_size(length, 64) == size


@pytest.mark.parametrize("size", [1, 2, 16])
@pytest.mark.parametrize("strength", [0.1, 300.0])
def test_products_decay_by_what_is_between(size: int, strength: float) -> None:
    random = np.random.default_rng(size)
    left, right = (random.standard_normal((2, size, 5)).astype(np.float32) for _ in range(2))
    log_decay = (-strength * random.random((2, size, 5))).astype(np.float32)
    wanted = np.zeros((2, size, size))
    for row, later, earlier in np.ndindex(wanted.shape):
        if later >= earlier:
            left_over = np.exp(log_decay[row, earlier + 1 : later + 1].sum(axis=0))
            wanted[row, later, earlier] = (left[row, later] * right[row, earlier] * left_over).sum()
    np.testing.assert_allclose(np.array(decayed_products(*map(mx.array, (left, right, log_decay)))), wanted, atol=1e-5)


def test_sums_until_the_end_leave_a_row_itself_out() -> None:
    assert np.array(until_the_end(mx.array([[1.0], [2.0], [3.0]]))).tolist() == [[5.0], [3.0], [0.0]]
