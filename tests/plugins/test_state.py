"""What recurrent layers keep, and what fills up rows leaves no trace in."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.architectures.falcon_h1 import TwoCaches
from weightloom.plugins.layers.cache import FullCache, NoCache
from weightloom.plugins.layers.state import StateCache, without_padding

PADDING = [0, 3, 6]


def test_arrays_are_kept_by_name_and_replaced() -> None:
    state = StateCache()
    assert state.get("scan") is None and state.offset == 0
    state.put(4, scan=mx.array([1.0]), conv=mx.array([2.0]))
    state.put(1, scan=mx.array([3.0]))
    assert (state.get("scan").item(), state.get("conv").item(), state.offset) == (3.0, 2.0, 5)


@pytest.mark.parametrize("tail", [(), (2,), (2, 3)])
@pytest.mark.parametrize("offset", [0, 2, 5])
def test_what_fills_up_a_row_is_0(offset: int, tail: tuple[int, ...]) -> None:
    state = StateCache()
    state.padding = mx.array(PADDING)
    state.put(offset)
    x = np.random.default_rng(1).standard_normal((3, 4, *tail)).astype(np.float32)
    wanted = x.copy()
    for row, number in np.ndindex(3, 4):
        if offset + number < PADDING[row]:
            wanted[row, number] = 0
    np.testing.assert_array_equal(np.array(without_padding(mx.array(x), state)), wanted)


def test_without_padding_nothing_is_done() -> None:
    x, state = mx.ones((1, 2, 3)), StateCache()
    assert without_padding(x, state) is x
    assert without_padding(x, NoCache()) is x


def test_two_caches_are_one() -> None:
    both = TwoCaches()
    assert both.padding is None and isinstance(both.attention, FullCache)
    both.padding = mx.array(PADDING)
    assert both.attention.padding is both.state.padding is both.padding
    both.attention.update(mx.zeros((3, 1, 4, 2)), mx.zeros((3, 1, 4, 2)))
    assert both.offset == 4
