"""Placing is NumPy's own copy, whatever the axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.reading.placing import place


@given(st.lists(st.sampled_from((1, 2, 3, 40, 70)), min_size=0, max_size=3), st.data())
def test_any_axes(shape: list[int], data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(("u1", "u2", "u4", "u8", "V3")))
    count = int(np.prod(shape))
    numbers = np.random.default_rng(2).integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8)
    source = numbers.view(dtype).reshape(shape).transpose(data.draw(st.permutations(range(len(shape)))))
    order = data.draw(st.permutations(range(len(shape))))
    made = np.zeros([source.shape[axis] for axis in order], dtype).transpose(np.argsort(order))
    place(made, source)
    assert made.tobytes() == source.tobytes()


@pytest.mark.parametrize("shape", [(500, 700), (3, 130, 2000), (64, 33)])
def test_transposes_larger_than_a_block(shape: tuple[int, ...]) -> None:
    source = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape)
    whole = np.zeros((*shape[:-2], shape[-1] + 5, shape[-2] + 7), np.uint16)
    target = whole[..., 2:-3, 3:-4].swapaxes(-1, -2)
    place(target, source)
    assert np.array_equal(target, source) and whole.sum(dtype=np.uint64) == source.sum(dtype=np.uint64)
