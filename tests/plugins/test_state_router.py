"""The router that looks at the state itself, against its formula a token at a time."""

import mlx.core as mx
import numpy as np

from weightloom.plugins.layers.state_router import StateRouter

SIZE, COUNT, CHOSEN, EPS = 8, 5, 2, 1e-6


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_the_best_by_normed_state_are_weighed_among_themselves_and_by_a_number_each() -> None:
    router, tokens = StateRouter(SIZE, COUNT, CHOSEN, EPS), _random(6, SIZE)
    matrix, scale, own = _random(COUNT, SIZE), _random(SIZE), _random(COUNT)
    router.proj.weight, router.scale, router.per_expert_scale = mx.array(matrix), mx.array(scale), mx.array(own)
    chosen, weights = (np.array(each) for each in router(mx.array(tokens)))
    for token, experts, got in zip(tokens, chosen, weights, strict=True):
        normed = token / np.sqrt((token**2).mean() + EPS)
        scores = np.exp(matrix @ (normed * scale) / np.sqrt(SIZE))
        best = np.argsort(-scores)[:CHOSEN]
        assert set(experts) == set(best)
        np.testing.assert_allclose(got, scores[experts] / scores[best].sum() * own[experts], rtol=1e-4)
