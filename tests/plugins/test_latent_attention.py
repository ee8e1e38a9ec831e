"""Latent attention: both forms against each other, whatever stands in the place of the product, and against NumPy."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_map

from weightloom.plugins.configs.rope_config import RopeConfig
from weightloom.plugins.configs.rope_kinds import DefaultRope
from weightloom.plugins.configs.rotation import Rotation
from weightloom.plugins.configs.yarn_rope import YarnRope
from weightloom.plugins.layers.cache import FullCache, NoCache
from weightloom.plugins.layers.latent_attention import LatentAttention, LatentShape, score_factor
from weightloom.plugins.layers.lora import LowRank, change
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.terms import Dial

HEADS, RANK, PLAIN, TURNED, VALUE, HIDDEN = 4, 32, 6, 4, 5, 8
SHAPE = LatentShape(HIDDEN, HEADS, 7, RANK, PLAIN, TURNED, VALUE, scale=0.3)
ROPE = Rope(RopeConfig(Rotation(100.0, TURNED, 64), DefaultRope()), TURNED, interleaved=True)


def attention() -> LatentAttention:
    mx.random.seed(3)
    made = LatentAttention(SHAPE, ROPE)
    made.update(tree_map(lambda array: mx.random.normal(array.shape) / 2, made.parameters()))
    return made


def plain(made: LatentAttention) -> None:
    """Leave the product as it is."""


def packed(made: LatentAttention) -> None:
    made.kv_b_proj = nn.QuantizedLinear.from_linear(made.kv_b_proj, group_size=32, bits=4)


def adapted(made: LatentAttention) -> None:
    rows = HEADS * (PLAIN + VALUE)
    change(
        made.kv_b_proj,
        {"weight": (LowRank(mx.random.normal((3, RANK)), mx.random.normal((rows, 3)), 0.4, Dial()),)},
    )


def packed_and_adapted(made: LatentAttention) -> None:
    packed(made)
    adapted(made)


@pytest.mark.parametrize("how", [plain, packed, adapted, packed_and_adapted])
def test_token_by_token_is_as_all_at_once(how: Callable[[LatentAttention], None]) -> None:
    made, x, cache = attention(), mx.random.normal((2, 9, HIDDEN)), FullCache()
    how(made)
    whole = made(x, "causal", NoCache())
    parts = [made(x[:, :3], "causal", cache), *(made(x[:, n : n + 1], None, cache) for n in range(3, 9))]
    np.testing.assert_allclose(np.array(mx.concatenate(parts, axis=1)), np.array(whole), atol=1e-5)


def test_the_forms_are_equal_for_several_tokens_under_a_mask() -> None:
    made, length, count = attention(), 3, 7
    shapes = [(2, HEADS, length, PLAIN), (2, HEADS, length, TURNED), (2, 1, count, RANK), (2, 1, count, TURNED)]
    given = [mx.random.normal(shape) for shape in shapes]
    mask = mx.random.uniform(shape=(2, 1, length, count)) < 0.7
    mask = mask | (mx.arange(count) == 0)
    np.testing.assert_allclose(np.array(made.absorbed(*given, mask)), np.array(made.expanded(*given, mask)), atol=1e-5)


def norm(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * np.array(weight)


def turn(x: Any, position: int) -> Any:
    angles = position * 100.0 ** (-np.arange(0, TURNED, 2) / TURNED)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack(
        [even * np.cos(angles) - odd * np.sin(angles), odd * np.cos(angles) + even * np.sin(angles)], -1
    ).reshape(x.shape)


def test_values() -> None:
    made, x = attention(), mx.random.normal((1, 5, HIDDEN))
    w = {name: np.array(made[name].weight) for name in made if "proj" in name}
    tokens = np.array(x)[0]
    made_of = norm(tokens @ w["q_a_proj"].T, made.q_a_layernorm.weight) @ w["q_b_proj"].T
    queries = made_of.reshape(5, HEADS, PLAIN + TURNED)
    down = tokens @ w["kv_a_proj_with_mqa"].T
    latent = norm(down[:, :RANK], made.kv_a_layernorm.weight)
    both = (latent @ w["kv_b_proj"].T).reshape(5, HEADS, PLAIN + VALUE)
    for token in range(5):
        mixed = []
        for head in range(HEADS):
            query = queries[token, head]
            turned = turn(query[PLAIN:], token)
            scores = np.array(
                [
                    query[:PLAIN] @ both[other, head, :PLAIN] + turned @ turn(down[other, RANK:], other)
                    for other in range(token + 1)
                ]
            )
            shares = np.exp(scores * 0.3 - (scores * 0.3).max())
            mixed.append(shares / shares.sum() @ both[: token + 1, head, PLAIN:])
        wanted = np.concatenate(mixed) @ w["o_proj"].T
        np.testing.assert_allclose(np.array(made(x, "causal", NoCache()))[0, token], wanted, atol=1e-4)


def test_a_scaled_rope_scales_scores() -> None:
    rotation = Rotation(100.0, 4, 64)
    assert score_factor(RopeConfig(rotation, DefaultRope())) == 1
    assert score_factor(RopeConfig(rotation, YarnRope(factor=40.0))) == 1
    stretched = YarnRope(factor=40.0, mscale=1.0, mscale_all_dim=0.5)
    assert score_factor(RopeConfig(rotation, stretched)) == pytest.approx((0.05 * np.log(40) + 1) ** 2)
