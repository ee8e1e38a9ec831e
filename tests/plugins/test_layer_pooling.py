"""The mean of a row's tokens, against NumPy's of those that the mask has."""

import mlx.core as mx
import numpy as np

from weightloom.plugins.layers.pooling import mean_of_tokens


def test_the_mean_is_of_the_tokens_that_the_mask_has() -> None:
    x = np.random.default_rng(1).standard_normal((2, 4, 3)).astype(np.float32)
    mask = np.array([[1, 1, 1, 0], [0, 1, 0, 1]])
    wanted = np.stack([row[kept.astype(bool)].mean(axis=0) for row, kept in zip(x, mask, strict=True)])
    assert np.allclose(mean_of_tokens(mx.array(x), mx.array(mask)), wanted, atol=1e-6)
    assert np.allclose(mean_of_tokens(mx.array(x), None), x.mean(axis=1), atol=1e-6)
