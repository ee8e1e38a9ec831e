"""Pooling against its documented formulas, written with NumPy a token at a time.

The package that the formulas are of is compared with in tests/oracle, where it is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.running.pooling import PoolingMode, pool, pooling_modes
from weightloom.runtime.running.pooling_file import read_pooling

MODES = get_args(PoolingMode)
Array = np.ndarray[Any, Any]
FLAGS = {
    "cls_token": "cls",
    "max_tokens": "max",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean_tokens": "weightedmean",
    "lasttoken": "lasttoken",
}


def reference(hidden: Array, mask: Array, mode: str) -> Array:
    """One text: tokens (L, D), those that count (L,) -> (D,); positions count from 1, padding and prompt included."""
    places = [place for place in range(len(mask)) if mask[place]]
    tokens = np.array([hidden[place] for place in places])
    total = sum(tokens)
    weighted = sum((place + 1) * hidden[place] for place in places)
    return {
        "cls": tokens[0],
        "max": tokens.max(axis=0),
        "mean": total / len(places),
        "mean_sqrt_len": total / np.sqrt(len(places)),
        "weightedmean": weighted / sum(place + 1 for place in places),
        "lasttoken": tokens[-1],
    }[mode]


masks = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 5)).map(lambda cut: [0] * cut[0] + [1] * cut[1]), min_size=1, max_size=4
)


@given(masks, st.lists(st.sampled_from(MODES), min_size=1, max_size=3), st.integers(0, 2**16))
def test_every_way_and_several_side_by_side(rows: list[list[int]], modes: list[Any], seed: int) -> None:
    longest = max(map(len, rows))
    mask = np.array([row + [0] * (longest - len(row)) for row in rows])
    hidden = np.random.default_rng(seed).standard_normal((*mask.shape, 3)).astype(np.float32)
    found = np.array(pool(mx.array(hidden), mx.array(mask), modes))
    expected = [np.concatenate([reference(h, m, mode) for mode in modes]) for h, m in zip(hidden, mask, strict=True)]
    assert np.abs(found - np.array(expected)).max() < 1e-5


def settings(folder: Path, **content: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(content))
    return folder / "config.json"


@pytest.mark.parametrize(("flag", "mode"), FLAGS.items())
def test_one_way_by_its_flag_and_by_its_name(tmp_path: Path, flag: str, mode: str) -> None:
    old = {f"pooling_mode_{each}": each == flag for each in FLAGS}
    assert read_pooling(settings(tmp_path, word_embedding_dimension=8, **old)).modes == (mode,)
    assert read_pooling(settings(tmp_path, embedding_dimension=8, pooling_mode=mode)).modes == (mode,)
    both = read_pooling(settings(tmp_path, pooling_mode=[mode], **old))
    assert (both.modes, both.include_prompt, both.width) == ((mode,), True, None)


def test_several_ways_in_their_order(tmp_path: Path) -> None:
    old = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}
    assert read_pooling(settings(tmp_path, **old)).modes == ("cls", "max", "mean")
    named = read_pooling(settings(tmp_path, pooling_mode=["mean", "cls"], include_prompt=False, embedding_dimension=4))
    assert (named.modes, named.include_prompt, named.width) == (("mean", "cls"), False, 4)
    assert read_pooling(settings(tmp_path, pooling_mode="mean_sqrt_len_tokens")).modes == ("mean_sqrt_len",)


@pytest.mark.parametrize(
    ("content", "field", "said"),
    [
        ({}, "pooling_mode", "none"),
        ({"pooling_mode_cls_token": False}, "pooling_mode", "none"),
        ({"pooling_mode": "median"}, "pooling_mode", "'median'"),
        ({"pooling_mode": []}, "pooling_mode", r"\[\]"),
        ({"pooling_mode": ["mean", 3]}, "pooling_mode", "3"),
        ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, "pooling_mode", "says cls, and its flags say mean"),
        ({"pooling_mode_median_tokens": True}, "pooling_mode_median_tokens", "median"),
        ({"pooling_mode_cls_token": "yes"}, "pooling_mode_cls_token", "'yes'"),
        ({"pooling_mode": "cls", "include_prompt": 1}, "include_prompt", "1"),
        ({"pooling_mode": "cls", "embedding_dimension": "8"}, "embedding_dimension", "'8'"),
    ],
)
def test_what_the_file_may_not_say_is_named(tmp_path: Path, content: dict[str, Any], field: str, said: str) -> None:
    path = settings(tmp_path, **content)
    with pytest.raises(ConfigError, match=said) as raised:
        read_pooling(path)
    assert (raised.value.file, raised.value.field) == (str(path), field)


def test_what_is_asked_for_is_checked() -> None:
    assert pooling_modes("cls") == ("cls",) and pooling_modes(["max", "cls"]) == ("max", "cls")
    wrong: list[Any] = ["", [], ["cls", "median"], "cls,mean"]
    for each in wrong:
        with pytest.raises(UsageError, match="pooling"):
            pooling_modes(each)
