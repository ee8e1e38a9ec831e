"""Latent attention where the rope changes with the context's length: keys that are kept turn on."""

import mlx.core as mx
import pytest
from mlx.utils import tree_map

from weightloom.plugins.configs.rope_config import read_rope
from weightloom.plugins.layers.cache import make_cache
from weightloom.plugins.layers.latent_attention import LatentAttention, LatentShape
from weightloom.plugins.layers.masks import causal_mask
from weightloom.plugins.layers.rope import Rope

ROPE = {
    "rope_scaling": {
        "rope_type": "longrope",
        "short_factor": [1.0, 2.0],
        "long_factor": [3.0, 9.0],
        "original_max_position_embeddings": 16,
    }
}


@pytest.mark.parametrize("seen", [7, 16, 23])
def test_what_follows_is_as_in_the_whole(seen: int) -> None:
    mx.random.seed(4)
    rope = Rope(read_rope(ROPE, 4, 64)["full_attention"], 4)
    attention = LatentAttention(LatentShape(8, 2, None, 8, plain=4, turned=4, value=4, scale=0.4), rope)
    attention.update(tree_map(lambda array: mx.random.normal(array.shape), attention.parameters()))
    x, cache = mx.random.normal((1, 24, 8)), make_cache(None)
    attention(x[:, :seen], "causal", cache)
    got = attention(x[:, seen:], causal_mask(24 - seen, seen, None), cache)
    whole = attention(x, "causal", make_cache(None))
    assert mx.allclose(got, whole[:, seen:], rtol=1e-4, atol=1e-4).item()
