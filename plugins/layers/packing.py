"""How a matrix is packed: MLX's quantization as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantization:
    """Bits an element, elements that share a scale, and MLX's mode ("affine", "mxfp4", "mxfp8", "nvfp4")."""

    bits: int
    group_size: int
    mode: str = "affine"
