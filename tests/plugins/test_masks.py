"""Masks beside the causal one, against the same said pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.cache import make_cache
from weightloom.plugins.layers.masks import Chunked, Mask, Window, causal_mask, mutual_mask, present_mask, written_out

LENGTH = 7
PRESENT = {
    "all": None,
    "behind": [[1] * 7, [1, 1, 1, 0, 0, 0, 0]],
    "in front": [[1] * 7, [0, 0, 1, 1, 1, 1, 1]],
    "holes": [[1, 0, 1, 1, 0, 1, 1], [1, 1, 0, 0, 0, 0, 1]],
}


@pytest.mark.parametrize("window", [None, 1, 3, 7, 9])
@pytest.mark.parametrize("case", PRESENT)
@pytest.mark.parametrize("mutual", [False, True])
def test_what_a_token_sees(case: str, window: int | None, mutual: bool) -> None:
    present = PRESENT[case]
    found = (mutual_mask if mutual else present_mask)(LENGTH, window, None if present is None else mx.array(present))
    allowed = _as_array(found)
    for row in range(2):
        for query in range(LENGTH):
            if present is not None and not present[row][query]:
                continue
            for key in range(LENGTH):
                far = abs(query - key) if mutual or key <= query else LENGTH + 9
                seen = far < (LENGTH + 1 if window is None else window) and (present is None or present[row][key] == 1)
                assert allowed[row, query, key] == seen, (case, query, key)


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("mask", [mutual_mask, present_mask])
def test_no_row_is_empty_where_there_is_a_window(window: int, mask: Callable[..., Mask]) -> None:
    found = mask(LENGTH, window, mx.array(PRESENT["in front"]))
    assert _as_array(found).any(axis=-1).all()


def _in_sight(query: int, key: int, window: Window) -> bool:
    """Say whether a token at `query` sees one at `key`, both counted from the first token."""
    if isinstance(window, Chunked):
        return key <= query and key // window.size == query // window.size
    return key <= query and (window is None or key > query - window)


@pytest.mark.parametrize("window", [None, 1, 3, 4, 20, Chunked(1), Chunked(4), Chunked(20)], ids=str)
@pytest.mark.parametrize("padding", [None, [0, 2], [5, 1]], ids=str)
@pytest.mark.parametrize(("length", "offset"), [(7, 0), (3, 6), (1, 6), (1, 3)])
def test_what_new_tokens_see_of_what_a_cache_gives(
    length: int, offset: int, padding: list[int] | None, window: Window
) -> None:
    # A cache of keys that are their positions says which these are, and in which order.
    cache = make_cache(window)
    for start, stop in ((0, offset), (offset, offset + length)):
        if stop > start:
            numbers = mx.broadcast_to(mx.arange(start, stop)[:, None], (2, 1, stop - start, 1))
            keys, _ = cache.update(numbers, numbers)
    found = causal_mask(length, offset, window, None if padding is None else mx.array(padding))
    positions = keys[0, 0, :, 0].tolist()
    written = written_out(found, length, len(positions))
    allowed = np.broadcast_to(np.array(written[:, 0] if written.ndim == 4 else written), (2, length, len(positions)))
    for row, number, place in np.ndindex(*allowed.shape):
        first, query, key = (padding or (0, 0))[row], offset + number, positions[place]
        seen = key == query if query < first else key >= first and _in_sight(query - first, key - first, window)
        assert allowed[row, number, place] == seen, (row, query, key)


@pytest.mark.parametrize("window", [None, 7, Chunked(7)])
def test_a_mask_that_hides_nothing_but_what_comes_is_a_word(window: Window) -> None:
    assert causal_mask(7, 0, window) == "causal"
    assert causal_mask(1, 3, window) is None


def _as_array(mask: Mask) -> np.ndarray[Any, Any]:
    if isinstance(mask, mx.array):
        shape = (2, LENGTH, LENGTH)
        return np.broadcast_to(np.array(mask[:, 0] if mask.ndim == 4 else mask), shape)
    whole = np.ones((2, LENGTH, LENGTH), bool)
    return np.tril(whole) if mask == "causal" else whole
