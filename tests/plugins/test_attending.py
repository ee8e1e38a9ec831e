"""Attention proper against the formula in NumPy, a query and a head at a time."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.masks import Mask

ROWS, HEADS, GROUPS, LENGTH, COUNT, DIMS, WIDE = 2, 6, 2, 3, 5, 4, 7
Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(4)
QUERIES, KEYS, VALUES = (
    RANDOM.standard_normal(shape).astype(np.float32)
    for shape in ((ROWS, HEADS, LENGTH, DIMS), (ROWS, GROUPS, COUNT, DIMS), (ROWS, GROUPS, COUNT, WIDE))
)
CAUSAL = np.tril(np.ones((LENGTH, COUNT), bool), COUNT - LENGTH)
BY_ROW = np.stack([CAUSAL, CAUSAL & (np.arange(COUNT) > 1)])[:, None]
MASKS: dict[str, tuple[Mask, Array]] = {
    "none": (None, np.ones((LENGTH, COUNT), bool)),
    "causal": ("causal", CAUSAL),
    "an array": (mx.array(CAUSAL), CAUSAL),
    "an array a row": (mx.array(BY_ROW), BY_ROW),
}


def one_by_one(allowed: Array, softcap: float | None, sinks: Array | None) -> Array:
    allowed = np.broadcast_to(allowed, (ROWS, 1, LENGTH, COUNT))
    out = np.zeros((ROWS, HEADS, LENGTH, WIDE))
    for row, head, query in np.ndindex(ROWS, HEADS, LENGTH):
        group = head // (HEADS // GROUPS)
        scores = KEYS[row, group] @ QUERIES[row, head, query] * 0.7
        scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
        shares = np.where(allowed[row, 0, query], np.exp(scores), 0)
        total = shares.sum() + (0 if sinks is None else np.exp(sinks[head]))
        out[row, head, query] = shares / total @ VALUES[row, group]
    return out


@pytest.mark.parametrize("sinks", [None, np.linspace(-1, 2, HEADS, dtype=np.float32)], ids=["no sinks", "sinks"])
@pytest.mark.parametrize("softcap", [None, 0.8])
@pytest.mark.parametrize("case", MASKS)
def test_values(case: str, softcap: float | None, sinks: Array | None) -> None:
    mask, allowed = MASKS[case]
    given = (mx.array(QUERIES), mx.array(KEYS), mx.array(VALUES))
    got = attend(*given, 0.7, mask, softcap, None if sinks is None else mx.array(sinks))
    np.testing.assert_allclose(np.array(got), one_by_one(allowed, softcap, sinks), atol=1e-5)


@pytest.mark.parametrize("softcap", [None, 0.8])
def test_the_dtype_stays(softcap: float | None) -> None:
    given = (mx.array(each).astype(mx.bfloat16) for each in (QUERIES, KEYS, VALUES))
    assert attend(*given, 0.7, "causal", softcap, mx.zeros((HEADS,), mx.bfloat16)).dtype == mx.bfloat16
