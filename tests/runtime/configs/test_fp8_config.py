"""What a config says of FP8 codes in blocks."""

from __future__ import annotations

from typing import Any

import pytest

from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.fp8_config import block_size, without_blocks

FP8 = {"quant_method": "fp8", "weight_block_size": [128, 64]}


@pytest.mark.parametrize(
    ("config", "block"),
    [
        ({"quantization_config": FP8}, (128, 64)),
        ({}, None),
        ({"quantization_config": None}, None),
        ({"quantization_config": {"quant_method": "fp8"}}, None),
        ({"quantization_config": {**FP8, "weight_block_size": None}}, None),
        ({"quantization_config": {"quant_method": "mxfp4", "weight_block_size": [1, 32]}}, None),
    ],
)
def test_rows_and_columns_of_a_block(config: dict[str, Any], block: tuple[int, int] | None) -> None:
    assert block_size(config) == block
    assert without_blocks({**config, "a": 1}) == ({"a": 1} if block else {**config, "a": 1})


@pytest.mark.parametrize("block", [128, [128], [128, "128"], [128, 0], [True, 128]])
def test_what_is_no_block(block: object) -> None:
    with pytest.raises(ConfigError, match="weight_block_size is"):
        block_size({"quantization_config": {**FP8, "weight_block_size": block}})
