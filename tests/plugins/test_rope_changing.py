"""Frequencies that follow the context's length: what a cache keeps counts as if all tokens had come at once."""

from itertools import pairwise

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.configs.long_rope import LongRope
from weightloom.plugins.configs.rope_config import RopeConfig
from weightloom.plugins.configs.rope_kinds import DynamicRope
from weightloom.plugins.configs.rotation import RopeKind, Rotation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import NoCache, make_cache
from weightloom.plugins.layers.masks import Window, causal_mask
from weightloom.plugins.layers.rope import Rope

LENGTH = 24
KINDS = {
    "long beyond 9": LongRope((1.5, 2.0, 1.0), (3.0, 7.0, 1.0), original_max_position_embeddings=9),
    "grown beyond 16": DynamicRope(3.0),
}


def layer(kind: RopeKind) -> Attention:
    mx.random.seed(3)
    made = Attention(AttentionShape(32, 4, 2, 8), Rope(RopeConfig(Rotation(100.0, 6, 16), kind), 8))
    mx.eval(made.parameters())
    return made


def whole(attention: Attention, x: mx.array, window: Window) -> mx.array:
    return attention(x, causal_mask(x.shape[1], 0, window), NoCache())


@pytest.mark.parametrize("chunks", [(LENGTH - 1, 1), (7, 7, 10), (1,) * LENGTH, (20, 1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("window", [None, 5, 22])
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_token_sees_what_it_sees_of_the_whole(kind: str, window: Window, chunks: tuple[int, ...]) -> None:
    attention, cache, start = layer(KINDS[kind]), make_cache(window), 0
    x = mx.random.normal((2, LENGTH, 32), key=mx.random.key(1))
    for length in chunks:
        mask = causal_mask(length, start, window)
        got = attention(x[:, start : start + length], mask, cache)
        start += length
    np.testing.assert_allclose(np.array(got[:, -1]), np.array(whole(attention, x, window)[:, -1]), atol=1e-5)


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_is_filled_up_turns_by_its_own_positions(kind: str, window: Window) -> None:
    attention, cache, filled = layer(KINDS[kind]), make_cache(window), 4
    cache.padding = mx.array([filled])
    x = mx.random.normal((1, LENGTH, 32), key=mx.random.key(1))
    padded = mx.concatenate([mx.zeros((1, filled, 32)), x], axis=1)
    cuts = [0, 7, 14, *range(21, LENGTH + filled + 1)]
    for start, stop in pairwise(cuts):
        got = attention(padded[:, start:stop], causal_mask(stop - start, start, window, cache.padding), cache)
    assert cache.offset == LENGTH + filled
    np.testing.assert_allclose(np.array(got[:, -1]), np.array(whole(attention, x, window)[:, -1]), atol=1e-5)


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_of_a_batch_turns_by_its_own_context(kind: str, window: Window) -> None:
    attention, cache, filled = layer(KINDS[kind]), make_cache(window), [0, 3, LENGTH - 4]
    cache.padding = mx.array(filled)
    x = mx.random.normal((3, LENGTH, 32), key=mx.random.key(1))
    for start, stop in pairwise([0, 7, 14, *range(21, LENGTH + 1)]):
        got = attention(x[:, start:stop], causal_mask(stop - start, start, window, cache.padding), cache)
    for row, fill in enumerate(filled):
        alone = whole(attention, x[row : row + 1, fill:], window)
        np.testing.assert_allclose(np.array(got[row, -1]), np.array(alone[0, -1]), atol=1e-5)
