"""Queries, keys and values by one matrix: as by three, whose rows stand in it one after the other."""

import mlx.core as mx
import numpy as np

from weightloom.plugins.configs.rope_config import RopeConfig
from weightloom.plugins.configs.rope_kinds import DefaultRope
from weightloom.plugins.configs.rotation import Rotation
from weightloom.plugins.layers.attention import Attention, AttentionShape, FusedAttention
from weightloom.plugins.layers.cache import FullCache, NoCache, positions_of
from weightloom.plugins.layers.rope import Rope


def test_one_matrix_is_three() -> None:
    mx.random.seed(2)
    shape, rope = AttentionShape(24, 4, 2, 8, bias=True), Rope(RopeConfig(Rotation(100.0, 8, 16), DefaultRope()), 8)
    three, one = Attention(shape, rope), FusedAttention(shape, rope)
    for part in ("weight", "bias"):
        rows = [three[name][part] for name in ("q_proj", "k_proj", "v_proj")]
        one.qkv_proj[part] = mx.concatenate(rows)
    one.o_proj.weight = three.o_proj.weight
    x = mx.random.normal((2, 5, 24))
    np.testing.assert_allclose(
        np.array(one(x, "causal", NoCache())), np.array(three(x, "causal", NoCache())), atol=1e-5
    )


def test_positions_count_from_the_first_token_that_is_one() -> None:
    cache = FullCache()
    assert positions_of(cache, 3).tolist() == [0, 1, 2]
    cache.padding = mx.array([0, 2])
    assert positions_of(cache, 3).tolist() == [[0, 1, 2], [0, 0, 0]]
    cache.update(mx.zeros((2, 1, 3, 4)), mx.zeros((2, 1, 3, 4)))
    assert positions_of(cache, 2).tolist() == [[3, 4], [1, 2]]
