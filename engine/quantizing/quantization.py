"""How a matrix is packed, as a value, and which ways MLX has.

Source: the documentation of `mlx.core.quantize` and `mlx.core.dequantize`, and what MLX 0.32 was seen to take.
"""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.errors import ConfigError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs

WORD = 32
AFFINE = "affine"
AFFINE_BITS = (1, 2, 3, 4, 5, 6, 8)
AFFINE_GROUPS = (32, 64, 128)
# Bits an element and elements of a group; a mode has one pair.
BLOCK_MODES = {"mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}
MODES = (AFFINE, *BLOCK_MODES)


@dataclass(frozen=True, slots=True)
class Quantization:
    """Bits an element, elements that share a scale, and MLX's mode ("affine", "mxfp4", "mxfp8", "nvfp4").

    `scaled`: each row has a factor beside its scales (`global_scale`).
    """

    bits: int
    group_size: int
    mode: str = AFFINE
    scaled: bool = False

    def __str__(self) -> str:
        return f"{self.bits} bits in groups of {self.group_size} ({self.mode})"

    @property
    def parts(self) -> tuple[str, ...]:
        """What a matrix becomes: its words, scales and, in affine mode, biases."""
        return ("weight", "scales", "biases") if self.mode == AFFINE else ("weight", "scales")

    def check(self) -> None:
        """Raise ConfigError for what MLX has not."""
        known = BLOCK_MODES.get(self.mode)
        affine = self.mode == AFFINE and self.bits in AFFINE_BITS and self.group_size in AFFINE_GROUPS
        if not affine and known != (self.bits, self.group_size):
            blocks = ", ".join(f"{mode} {bits} in {size}" for mode, (bits, size) in BLOCK_MODES.items())
            bits, sizes = ("/".join(map(str, each)) for each in (AFFINE_BITS, AFFINE_GROUPS))
            raise ConfigError(
                f"{self} is no quantization that MLX has",
                expected=f"{AFFINE} {bits} in {sizes}, or {blocks}",
                field="mode" if self.mode not in MODES else "bits",
            )

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Say whether rows of a matrix (..., rows, columns) divide into groups."""
        return len(shape) > 1 and shape[-1] > 0 and shape[-1] % self.group_size == 0

    def packed(self, matrix: TensorSpec) -> Specs:
        """Give the specs of words, scales and biases of a float matrix that fits."""
        *rows, columns = matrix.shape
        scales = TensorSpec(matrix.dtype if self.mode == AFFINE else "U8", (*rows, columns // self.group_size))
        words = TensorSpec("U32", (*rows, columns * self.bits // WORD))
        return (words, scales, scales) if self.mode == AFFINE else (words, scales)


def part_names(matrix: str) -> tuple[str, str, str]:
    """Give the names of words, scales and biases: `X.weight` with `X.scales`, a stack `NAME` with `NAME_scales`."""
    path = matrix.removesuffix(".weight")
    end = "_" if path == matrix else "."
    return matrix, f"{path}{end}scales", f"{path}{end}biases"
