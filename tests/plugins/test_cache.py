"""Caches against a plain list of all tokens, cut into chunks in any way."""

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.plugins.layers.cache import FullCache, NoCache, SlidingCache, make_cache
from weightloom.plugins.layers.masks import causal_mask

chunks = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def entries(start: int, length: int) -> mx.array:
    """(1, 2, length, 3), each filled with its position."""
    return mx.broadcast_to(mx.arange(start, start + length)[None, None, :, None], (1, 2, length, 3)).astype(mx.float32)


def positions(array: mx.array) -> list[int]:
    assert array.shape[0] == 1 and array.shape[1] == 2 and array.shape[3] == 3
    return [int(each) for each in np.array(array)[0, 1, :, 2]]


@given(chunks)
def test_a_full_cache_gives_all_in_order(lengths: list[int]) -> None:
    cache, seen = FullCache(), 0
    for length in lengths:
        assert cache.offset == seen
        keys, values = cache.update(entries(seen, length), -entries(seen, length))
        seen += length
        assert positions(keys) == list(range(seen))
        assert positions(-values) == list(range(seen))


@given(chunks, st.integers(1, 12))
def test_a_sliding_cache_gives_what_the_new_tokens_may_see(lengths: list[int], window: int) -> None:
    cache, seen = SlidingCache(window), 0
    for length in lengths:
        assert cache.offset == seen
        keys, _ = cache.update(entries(seen, length), entries(seen, length))
        wanted = list(range(max(seen - window + 1, 0), seen + length))
        got = positions(keys)
        assert (sorted(got) if length == 1 else got) == wanted
        mask = causal_mask(length, seen, window)
        if isinstance(mask, mx.array):
            assert mask.shape == (length, len(got))
        seen += length


def test_a_long_run_of_single_tokens() -> None:
    cache = FullCache()
    for place in range(600):
        keys, _ = cache.update(entries(place, 1), entries(place, 1))
    assert positions(keys) == list(range(600))


def test_the_dtype_is_that_of_what_comes() -> None:
    for cache in (FullCache(), SlidingCache(4)):
        keys, _ = cache.update(entries(0, 3).astype(mx.bfloat16), entries(0, 3).astype(mx.bfloat16))
        keys, _ = cache.update(entries(3, 1).astype(mx.bfloat16), entries(3, 1).astype(mx.bfloat16))
        assert keys.dtype == mx.bfloat16


def test_no_cache_keeps_nothing() -> None:
    cache = NoCache()
    assert positions(cache.update(entries(0, 2), entries(0, 2))[0]) == [0, 1]
    assert cache.offset == 0


def test_the_window_chooses_the_cache() -> None:
    assert isinstance(make_cache(None), FullCache)
    assert isinstance(make_cache(3), SlidingCache)


@pytest.mark.parametrize(("offset", "length", "window"), [(0, 6, 3), (4, 5, 3), (2, 3, 4), (9, 2, 1), (0, 7, 6)])
def test_a_mask_lets_each_token_see_its_window(offset: int, length: int, window: int) -> None:
    mask = causal_mask(length, offset, window)
    assert isinstance(mask, mx.array)
    first = max(offset - window + 1, 0)
    wanted = [
        [key <= query and query - key < window for key in range(first, offset + length)]
        for query in range(offset, offset + length)
    ]
    assert mask.tolist() == wanted


def test_masks_that_need_no_array() -> None:
    assert causal_mask(1, 9, 4) is None
    assert causal_mask(3, 9, None) == "causal"
    assert causal_mask(3, 1, 4) == "causal"
