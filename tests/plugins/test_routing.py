"""Routing: which experts are chosen, of which groups, and what their weights are."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.routing import best, in_best_groups, normalised, softmax_over_all, softmax_over_chosen
from weightloom.plugins.layers.scoring import one_best, two_best

SCORES = np.random.default_rng(3).standard_normal((2, 5, 12)).astype(np.float32)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_the_best_are_chosen(k: int) -> None:
    chosen = np.array(best(mx.array(SCORES), k))
    assert (np.sort(chosen) == np.sort(np.argsort(-SCORES)[..., :k])).all()


def test_weights_are_shares_of_all_or_of_the_chosen() -> None:
    shares = np.exp(SCORES) / np.exp(SCORES).sum(axis=-1, keepdims=True)
    for router, over_chosen in ((softmax_over_all, False), (softmax_over_chosen, True)):
        chosen, weights = router(mx.array(SCORES).astype(mx.float32), 3)
        wanted = np.take_along_axis(shares, np.array(chosen), axis=-1)
        wanted = wanted / wanted.sum(axis=-1, keepdims=True) if over_chosen else wanted
        np.testing.assert_allclose(np.array(weights), wanted, rtol=1e-5)
        assert router(mx.array(SCORES).astype(mx.bfloat16), 3)[1].dtype == mx.float32


@pytest.mark.parametrize("outside", [0.0, -np.inf])
@pytest.mark.parametrize("of_two", [False, True])
def test_what_is_not_in_the_best_groups_counts_as_told(of_two: bool, outside: float) -> None:
    got = np.array(in_best_groups(mx.array(SCORES), 4, 2, two_best if of_two else one_best, outside))
    for place in np.ndindex(SCORES.shape[:2]):
        groups = SCORES[place].reshape(4, 3)
        worth = np.sort(groups, axis=-1)[:, -2:].sum(axis=-1) if of_two else groups.max(axis=-1)
        wanted = np.full((4, 3), outside)
        for group in np.argsort(-worth)[:2]:
            wanted[group] = groups[group]
        np.testing.assert_array_equal(got[place].reshape(4, 3), wanted.astype(np.float32))


def test_weights_over_their_sum() -> None:
    weights = np.abs(SCORES)
    got = np.array(normalised(mx.array(weights), 0.5))
    np.testing.assert_allclose(got, weights / (weights.sum(axis=-1, keepdims=True) + 0.5), rtol=1e-5)
    assert np.isfinite(np.array(normalised(mx.zeros((2, 3)), 1e-20))).all()
