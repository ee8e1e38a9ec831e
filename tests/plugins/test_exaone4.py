"""Which of EXAONE 4's layers have windows and which turn, by each way to say so."""

from typing import Any

import pytest

from tests.families.family import SIZES
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.exaone4 import read_config, turning
from weightloom.plugins.layers.dense import DenseConfig

CONFIG = {**SIZES, "num_hidden_layers": 6, "sliding_window": 9}


def config(**values: Any) -> DenseConfig:
    return read_config({**CONFIG, **values})


@pytest.mark.parametrize(
    ("values", "windows"),
    [
        ({}, [9, 9, 9, None, 9, 9]),
        ({"sliding_window_pattern": 3}, [9, 9, None, 9, 9, None]),
        ({"sliding_window_pattern": "LLG"}, [9, 9, None, 9, 9, None]),
        ({"sliding_window_pattern": "LLLG"}, [9, 9, 9, None, 9, None]),
        (
            {"sliding_window_pattern": "LG", "layer_types": ["full_attention"] * 5 + ["sliding_attention"]},
            [None] * 5 + [9],
        ),
    ],
)
def test_layers_with_windows_turn(values: dict[str, Any], windows: list[int | None]) -> None:
    read = config(**values)
    assert read.windows == tuple(windows)
    assert turning(read) == tuple(window is not None for window in windows)


def test_without_windows_all_turn() -> None:
    read = config(sliding_window=None, sliding_window_pattern=None)
    assert read.windows == (None,) * 6
    assert all(turning(read))


@pytest.mark.parametrize("pattern", ["", "LLX"])
def test_other_letters_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="letters L and G") as caught:
        config(sliding_window_pattern=pattern)
    assert caught.value.field == "sliding_window_pattern"
