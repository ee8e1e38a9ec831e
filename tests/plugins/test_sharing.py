"""Layers that borrow keys and values: from the last with their window, whole and through caches alike."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from weightloom.engine.errors import UsageError
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import NoCache, make_cache
from weightloom.plugins.layers.masks import Window, causal_mask
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.sharing import (
    BorrowersCache,
    Borrowing,
    BorrowingAttention,
    Lending,
    Lent,
    SharingDecoder,
)
from weightloom.plugins.layers.stages import Stage

SHAPE = AttentionShape(16, 4, 2, 8)


def _tokens(length: int) -> mx.array:
    return mx.array(np.random.default_rng(length).normal(size=(2, length, 16)).astype(np.float32))


def _wanted(lender: Attention, borrower: BorrowingAttention, x: np.ndarray, window: int | None) -> np.ndarray:
    """Attend a token and a head at a time: queries of the one, keys and values of the other."""
    queries, keys, values = (
        (x @ np.array(layer.weight).T).reshape(*x.shape[:2], -1, 8)
        for layer in (borrower.q_proj, lender.k_proj, lender.v_proj)
    )
    mixed = np.zeros_like(queries)
    for row, last, head in np.ndindex(*queries.shape[:3]):
        first = 0 if window is None else max(last - window + 1, 0)
        seen = slice(first, last + 1)
        scores = keys[row, seen, head // 2] @ queries[row, last, head] / np.sqrt(8)
        shares = np.exp(scores - scores.max())
        mixed[row, last, head] = shares / shares.sum() @ values[row, seen, head // 2]
    return mixed.reshape(*x.shape[:2], -1) @ np.array(borrower.o_proj.weight).T


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("cuts", [(9,), (4, 7, 8, 9)])
def test_a_borrower_attends_to_what_was_lent(window: Window, cuts: tuple[int, ...]) -> None:
    lender, borrower, x = Attention(SHAPE, None), BorrowingAttention(SHAPE, None), _tokens(9)
    caches, parts = (make_cache(window), BorrowersCache()), []
    for start, stop in zip((0, *cuts), cuts, strict=False):
        mask, lent = causal_mask(stop - start, start, window), Lent()
        lender(x[:, start:stop], mask, Lending(caches[0], lent, window))
        parts.append(borrower(x[:, start:stop], mask, Borrowing(caches[1], lent, window)))
    assert isinstance(window, int | None)
    wanted = _wanted(lender, borrower, np.array(x), window)
    np.testing.assert_allclose(np.array(mx.concatenate(parts, axis=1)), wanted, atol=1e-5)
    assert [cache.offset for cache in caches] == [9, 9]


def test_the_last_lender_of_a_window_counts() -> None:
    lent, cache = Lent(), NoCache()
    arrays = [mx.full((1, 1, 1, 1), number) for number in range(3)]
    for array, window in zip(arrays, (None, None, 5), strict=True):
        Lending(cache, lent, window).update(array, array)
    assert [Borrowing(cache, lent, window).update(arrays[0], arrays[0])[0].item() for window in (None, 5)] == [1, 2]


def test_a_borrower_has_no_keys_and_values() -> None:
    assert set(BorrowingAttention(SHAPE, None, rms_norm(1e-6)).children()) == {"q_proj", "q_norm", "o_proj"}


def test_layers_that_borrow_are_not_done_in_stages() -> None:
    decoder = SharingDecoder(4, 16, nn.RMSNorm(16), [], 0)
    with pytest.raises(UsageError, match="keys and values of earlier layers"):
        decoder.at_stage(Stage(mx.distributed.init()))
