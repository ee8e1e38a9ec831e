"""Masks beside the causal one, against the same said pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.masks import Mask, mutual_mask, present_mask

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


def _as_array(mask: Mask) -> np.ndarray[Any, Any]:
    if isinstance(mask, mx.array):
        shape = (2, LENGTH, LENGTH)
        return np.broadcast_to(np.array(mask[:, 0] if mask.ndim == 4 else mask), shape)
    whole = np.ones((2, LENGTH, LENGTH), bool)
    return np.tril(whole) if mask == "causal" else whole
