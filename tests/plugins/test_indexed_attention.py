"""The index of DeepSeek-V3.2 against its formula, and what it asks of masks and caches."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map

from weightloom.plugins.architectures.deepseek_v32 import Fields, Indexer
from weightloom.plugins.configs.rope_config import RopeConfig
from weightloom.plugins.configs.rope_kinds import DefaultRope
from weightloom.plugins.configs.rotation import Rotation
from weightloom.plugins.layers.cache import IndexedCache, NoCache
from weightloom.plugins.layers.masks import written_out
from weightloom.plugins.layers.rope import Rope

HIDDEN, RANK, HEADS, DIMS, TURNED, CHOSEN = 8, 6, 16, 10, 4, 3


def indexer() -> Indexer:
    mx.random.seed(5)
    fields = Fields(
        hidden_size=HIDDEN,
        q_lora_rank=RANK,
        qk_rope_head_dim=TURNED,
        index_topk=CHOSEN,
        index_head_dim=DIMS,
        index_n_heads=HEADS,
    )
    made = Indexer(fields, Rope(RopeConfig(Rotation(100.0, TURNED, 64), DefaultRope()), DIMS))
    made.update(tree_map(lambda array: mx.random.normal(array.shape), made.parameters()))
    return made


def turn(x: Any, position: int) -> Any:
    angles = position * 100.0 ** (-np.arange(0, TURNED, 2) / TURNED)
    first, second, rest = np.split(x, [TURNED // 2, TURNED])
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest])


def test_the_choice() -> None:
    made, length = indexer(), 9
    x, compressed = mx.random.normal((1, length, HIDDEN)), mx.random.normal((1, length, RANK))
    w = {name: np.array(made[name].weight) for name in ("wq_b", "wk", "weights_proj")}
    raw = np.array(x)[0] @ w["wk"].T
    centred = raw - raw.mean(axis=-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
    keys = normed * np.array(made.k_norm.weight) + np.array(made.k_norm.bias)
    queries = (np.array(compressed)[0] @ w["wq_b"].T).reshape(length, HEADS, DIMS)
    weights = np.array(x)[0] @ w["weights_proj"].T
    got = np.array(made(x, compressed, "causal", NoCache()))[0]
    for token in range(CHOSEN, length):
        scores = [
            sum(
                weights[token, head] * max(turn(queries[token, head], token) @ turn(keys[other], other), 0)
                for head in range(HEADS)
            )
            for other in range(token + 1)
        ]
        assert set(got[token]) == set(np.argsort(scores)[-CHOSEN:])


def test_no_choice_where_all_are_few_enough() -> None:
    x = mx.zeros((1, CHOSEN, HIDDEN))
    assert indexer()(x, mx.zeros((1, CHOSEN, RANK)), "causal", NoCache()) is None


def test_the_cache_gives_all_keys_of_the_index() -> None:
    cache, keys = IndexedCache(), mx.random.normal((2, 1, 5, DIMS))
    tokens = mx.zeros((2, 1, 5, 4))
    for start, stop in ((0, 3), (3, 4), (4, 5)):
        given = cache.index(keys[:, :, start:stop])
        assert mx.array_equal(given, keys[:, :, :stop])
        cache.update(tokens[:, :, start:stop], tokens[:, :, start:stop])
    assert cache.offset == 5


def test_masks_written_out() -> None:
    assert written_out(None, 1, 3).tolist() == [[True] * 3]
    assert written_out("causal", 2, 3).tolist() == [[True, True, False], [True, True, True]]
    mask = mx.array([[True, False]])
    assert written_out(mask, 1, 2) is mask
