"""Blocks of a view: each bounded and contiguous in the whole, together the whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import TensorSpec
from weightloom.engine.reading.gather import gather
from weightloom.engine.views.blocks import blocks
from weightloom.engine.views.view import View

SHAPES = st.lists(st.integers(0, 6), max_size=4).map(tuple)


def reader(data: bytes) -> Callable[[int, int, memoryview], None]:
    def read(slot: int, offset: int, buffer: memoryview) -> None:
        buffer[:] = data[offset : offset + len(buffer)]

    return read


@given(SHAPES, st.sampled_from(("U8", "BF16", "F32")), st.integers(1, 64), st.randoms(use_true_random=False))
def test_blocks_make_up_the_whole(shape: tuple[int, ...], dtype: str, limit: int, chance: object) -> None:
    spec = TensorSpec(dtype, shape)
    data = np.random.default_rng(7).integers(0, 256, spec.nbytes, np.uint8).tobytes()
    view = View.identity(0, spec)
    if len(shape) > 1:
        view = view.permute((*range(1, len(shape)), 0))
    whole = memoryview(bytearray(spec.nbytes))
    gather(view, reader(data), whole)
    width = spec.nbytes // max(int(np.prod(shape)), 1)
    at, found = 0, bytearray()
    for block in blocks(view, limit):
        assert block.start == at and block.nbytes <= max(limit, width)
        out = memoryview(bytearray(block.nbytes))
        gather(block.view, reader(data), out)
        at, found = at + block.nbytes, found + out
    assert found == bytes(whole)


@pytest.mark.parametrize(
    ("dtype", "shape", "limit"),
    [("F4", (3, 8), 3), ("F4", (16,), 5), ("F6_E2M3", (2, 8), 4), ("F6_E3M2", (4, 2, 2), 4), ("F4", (5, 2), 1)],
)
def test_no_block_begins_inside_a_byte(dtype: str, shape: tuple[int, ...], limit: int) -> None:
    spec = TensorSpec(dtype, shape)
    data = bytes(range(spec.nbytes))
    found = bytearray()
    for block in blocks(View.identity(0, spec), limit):
        out = memoryview(bytearray(block.nbytes))
        gather(block.view, reader(data), out)
        found += out
    assert found == data


def test_a_large_tensor_with_a_leading_one_is_cut_too() -> None:
    parts = list(blocks(View.identity(0, TensorSpec("U8", (1, 1, 1000, 10))), 100))
    assert [part.nbytes for part in parts] == [100] * 100
