"""What a config says of FP8 codes with a scale for each block, which mlx-lm has as floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weightloom.engine.errors import ConfigError

FIELD = "quantization_config"


def block_size(config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Give the rows and columns of a block; None where weights are no such codes.

    Raises ConfigError for a `weight_block_size` that is not two numbers.
    """
    found = config.get(FIELD)
    if not isinstance(found, Mapping) or found.get("quant_method") != "fp8":
        return None
    block = found.get("weight_block_size")
    if block is None:
        return None
    if not isinstance(block, list) or len(block) != 2 or not all(type(size) is int and size > 0 for size in block):
        raise ConfigError(
            f"weight_block_size is {block!r}",
            expected="rows and columns of a block",
            field=f"{FIELD}.weight_block_size",
        )
    return block[0], block[1]


def without_blocks(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the config of the same weights as floats."""
    return config if block_size(config) is None else {name: value for name, value in config.items() if name != FIELD}
