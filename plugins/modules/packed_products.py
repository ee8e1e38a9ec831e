"""Whether MLX computes with packed matrices of a kind on this device: tried on a small one, not looked up.

Kernels differ by device: one that lacks a number of bits may raise, or give what is wrong without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from weightloom.engine.errors import ConfigError
from weightloom.plugins.layers.packing import Quantization

if TYPE_CHECKING:
    import mlx.core as mx

    Parts = tuple[mx.array, mx.array, mx.array | None]

_STACK = 3
_ROWS, _COLUMNS = 32, 512
_TOLERANCE = 1e-2


def refuse_unrunnable(wanted: Mapping[str, Quantization], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ConfigError, naming the module, for a packed matrix or stack that MLX cannot multiply with here."""
    import mlx.core as mx

    for path, how in wanted.items():
        stacked = len(shapes[path]) == _STACK
        if not runs(how, stacked, str(mx.default_device())):
            raise ConfigError(
                f"{path} has {how}, and MLX does not compute with {'a stack' if stacked else 'a matrix'} of it on "
                f"{mx.default_device()}",
                expected="a quantization that MLX has kernels for",
                hint="dequantize it, or quantize the model with more bits",
                tensor=path,
                field=path,
            )


@lru_cache
def runs(how: Quantization, stacked: bool, device: str) -> bool:
    """Say whether a product with a packed matrix, or one of a stack, is about that with the unpacked one."""
    import mlx.core as mx

    try:
        found, expected = _products(how, stacked)
        return bool((mx.abs(found - expected).max() <= _TOLERANCE * mx.abs(expected).max()).item())
    except (ValueError, RuntimeError):
        return False


def _products(how: Quantization, stacked: bool) -> tuple[mx.array, mx.array]:
    import mlx.core as mx

    # Values from a formula, for the random state is the caller's.
    plain = mx.sin(mx.arange(2 * _ROWS * _COLUMNS, dtype=mx.float32)).reshape(2, _ROWS, _COLUMNS)
    x = mx.cos(mx.arange(_COLUMNS, dtype=mx.float32)).reshape(1, 1, _COLUMNS)
    words, scales, *biases = mx.quantize(plain, how.group_size, how.bits, how.mode)
    bias = biases[0] if biases else None
    back = mx.dequantize(words, scales, bias, how.group_size, how.bits, how.mode).astype(mx.float32)
    if stacked:
        found = _from_stack(how, x, (words, scales, bias))
    else:
        found = _from_matrix(how, x[0], (words[1], scales[1], None if bias is None else bias[1]))
    return found.reshape(-1), (x[0] @ back[1].T).reshape(-1)


def _from_stack(how: Quantization, x: mx.array, parts: Parts) -> mx.array:
    import mlx.core as mx

    rows = mx.array([1])
    return mx.gather_qmm(
        x, *parts, rhs_indices=rows, transpose=True, group_size=how.group_size, bits=how.bits, mode=how.mode
    )


def _from_matrix(how: Quantization, x: mx.array, parts: Parts) -> mx.array:
    import mlx.core as mx

    return mx.quantized_matmul(x, *parts, transpose=True, group_size=how.group_size, bits=how.bits, mode=how.mode)
