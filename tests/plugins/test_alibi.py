"""ALiBi against its formula, head by head, and attention with it against NumPy."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.architectures.baichuan import slopes, with_alibi
from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.masks import Mask, causal_mask


def test_slopes_of_a_power_of_two() -> None:
    assert slopes(8) == pytest.approx([2.0**-each for each in range(1, 9)])
    assert slopes(1) == [2.0**-8]


def test_others_go_on_with_each_other_slope_of_twice_as_many() -> None:
    assert slopes(6) == pytest.approx([*slopes(4), slopes(8)[0], slopes(8)[2]])


def mixed(queries: Any, keys: Any, values: Any, seen: Any) -> Any:
    """One row and head at a time."""
    batch, heads, length, dims = queries.shape
    first, found = keys.shape[2] - length, np.zeros_like(queries)
    for row in range(batch):
        for head, slope in enumerate(slopes(heads)):
            for at in range(length):
                scores = keys[row, head] @ queries[row, head, at] * dims**-0.5
                scores = scores - slope * (first + at - np.arange(keys.shape[2]))
                weights = np.exp(scores - scores.max()) * seen[row, at]
                found[row, head, at] = weights / weights.sum() @ values[row, head]
    return found


@pytest.mark.parametrize("length", [1, 3, 7])
@pytest.mark.parametrize("padding", [None, [0, 2]])
def test_attention(length: int, padding: list[int] | None) -> None:
    random, count = np.random.default_rng(4), 7
    queries = random.standard_normal((2, 3, length, 4)).astype(np.float32)
    keys, values = (random.standard_normal((2, 3, count, 4)).astype(np.float32) for _ in range(2))
    first = count - length
    at, of = np.arange(first, count)[:, None], np.arange(count)[None, :]
    started = of >= np.array(padding or [0, 0])[:, None, None]
    seen = ((of <= at) & started) | (of == at)
    mask: Mask = causal_mask(length, first, None, None if padding is None else mx.array(padding))
    added = with_alibi(mask, length, count, mx.array(slopes(3)), mx.float32)
    got = attend(*(mx.array(each) for each in (queries, keys, values)), 0.5, added)
    np.testing.assert_allclose(np.array(got), mixed(queries, keys, values, seen), rtol=1e-4, atol=1e-5)
