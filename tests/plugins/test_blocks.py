"""The order of norms in blocks: parts that do something simple, put together by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from weightloom.plugins.layers.blocks import Block, ParallelBlock, PostNormBlock, SandwichBlock, SingleBlock
from weightloom.plugins.layers.cache import FullCache, NoCache, SlidingCache
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.norms import Norm
from weightloom.plugins.layers.state import StateCache

Array = np.ndarray[Any, Any]
X = np.random.default_rng(2).standard_normal((1, 3, 4)).astype(np.float32)


class Scaled(nn.Module):
    """A norm that is told from others: times a number of its own, and squared."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * x * self.factor


class Attends(nn.Module):
    """Adds one; called as attention is."""

    def __call__(self, x: mx.array, mask: object, cache: object) -> mx.array:
        return x + 1

    def make_cache(self) -> StateCache:
        return StateCache()


class Feeds(nn.Module):
    """Takes three off."""

    def __call__(self, x: Any) -> Any:
        return x - 3


def norms() -> Norm:
    """Give norms whose factors are 1, 2, 3, ... in the order in which they are made."""
    numbers = count(1)
    return lambda _: Scaled(next(numbers))


def usual(x: Array, residual: float = 1.0) -> Array:
    x = x + residual * (x * x + 1)
    return x + residual * (2 * x * x - 3)


def sandwich(x: Array) -> Array:
    x = x + 2 * (x * x + 1) ** 2
    return x + 4 * (3 * x * x - 3) ** 2


def post(x: Array) -> Array:
    x = x + (x + 1) ** 2
    return x + 2 * (x - 3) ** 2


def parallel(x: Array) -> Array:
    return x + (x * x + 1) + (x * x - 3)


@pytest.mark.parametrize(
    ("kind", "wanted"), [(Block, usual), (SandwichBlock, sandwich), (PostNormBlock, post), (ParallelBlock, parallel)]
)
def test_where_norms_are(kind: Callable[..., Any], wanted: Callable[[Array], Array]) -> None:
    block = kind(Attends(), Feeds(), 4, norms(), 7)
    np.testing.assert_allclose(np.array(block(mx.array(X), None, NoCache())), wanted(X), rtol=1e-5, atol=1e-5)
    assert block.window == 7 and isinstance(block.make_cache(), SlidingCache)
    assert isinstance(kind(Attends(), Feeds(), 4, norms()).make_cache(), FullCache)


def test_what_is_added_may_be_scaled_and_the_layer_be_called_otherwise() -> None:
    block = Block(Attends(), Feeds(), 4, norms(), residual=0.3, mlp_name="feed_forward")
    assert "feed_forward" in block and "mlp" not in block
    np.testing.assert_allclose(np.array(block(mx.array(X), None, NoCache())), usual(X, 0.3), rtol=1e-5, atol=1e-5)


def test_a_block_of_mixers_is_as_the_usual_one_under_its_own_names() -> None:
    parts = Parts("mixer", "norm", "feed_forward", "ffn_norm")
    block = MixerBlock(Attends(), Feeds(), 4, norms(), parts, residual=0.3)
    assert {"mixer", "norm", "feed_forward", "ffn_norm"} <= set(block)
    np.testing.assert_allclose(np.array(block(mx.array(X), None, NoCache())), usual(X, 0.3), rtol=1e-5, atol=1e-5)


def test_a_block_of_mixers_has_the_cache_that_its_mixer_needs() -> None:
    assert isinstance(MixerBlock(Attends(), Feeds(), 4, norms(), Parts(), 3).make_cache(), SlidingCache)
    assert isinstance(MixerBlock(Attends(), Feeds(), 4, norms(), Parts(), cache=StateCache).make_cache(), StateCache)


def test_a_single_mixer_after_a_norm() -> None:
    block = SingleBlock(Attends(), 4, norms())
    np.testing.assert_allclose(np.array(block(mx.array(X), None, NoCache())), X + X * X + 1, rtol=1e-5)
    assert block.window is None and isinstance(block.make_cache(), StateCache)


def test_a_residual_may_have_a_dtype_of_its_own() -> None:
    narrow = mx.array(X).astype(mx.bfloat16)
    assert SingleBlock(Attends(), 4, norms())(narrow, None, None).dtype == mx.bfloat16
    assert SingleBlock(Attends(), 4, norms(), mx.float32)(narrow, None, None).dtype == mx.float32
