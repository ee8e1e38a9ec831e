"""From blocks of a GGUF tensor to what MLX can use: packed words, scales, biases; or plain float32.

All functions take blocks as uint8 (n, bytes of a block). MLX's affine quantization, groups of 32 elements along a
row: value = scale * code + bias, codes packed from the lowest bits of each 32-bit word on.
Block forms, from the ggml project: Q4_0 is a float16 scale and 16 bytes of nibbles (value = d * (code - 8)), Q4_1 has a
float16 minimum after the scale (value = d * code + m), Q8_0 is a float16 scale and 32 signed bytes. The low nibbles are
the first 16 elements. Q5_0 and Q5_1 have 32 fifth bits in four bytes before the nibbles, and 16 stands for 0 in Q5_0.
MXFP4 is a power of two in a byte (E8M0) and 16 bytes of nibbles, codes of E2M1: MLX has the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weightloom.engine.extras import need_gguf
from weightloom.engine.gguf.types import GgmlType

Blocks = npt.NDArray[np.uint8]
Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Packing:
    """One block type of one group: how its codes become unsigned ones, in words.

    `zero` is the code that stands for 0 where the block has no minimum of its own: bias = -zero * scale.
    """

    bits: int
    zero: int | None
    words: Callable[[Blocks], Values]
    groups: int = 1

    @property
    def most(self) -> float:
        """The largest scale whose bias is still a float16; larger ones need float32."""
        return float("inf") if self.zero is None else 65504.0 / self.zero

    def scales(self, blocks: Blocks) -> Values:
        """Give each block's scale, as it is (float16)."""
        return half(blocks, 0)

    def biases(self, blocks: Blocks) -> Values:
        """Give each block's bias in float16; exact while its scale is at most `most`."""
        return half(blocks, 2) if self.zero is None else self.wide_biases(blocks).astype(np.float16)

    def wide_scales(self, blocks: Blocks) -> Values:
        """Give each block's scale in float32."""
        return half(blocks, 0).astype(np.float32)

    def wide_biases(self, blocks: Blocks) -> Values:
        """Give each block's bias in float32, always exact."""
        zero = self.zero
        return half(blocks, 2).astype(np.float32) if zero is None else self.wide_scales(blocks) * np.float32(-zero)


def half(blocks: Blocks, at: int) -> Values:
    """Give the float16 at a place of each block."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2")[:, 0]


def _nibbles(codes: Blocks) -> Values:
    """Put elements 2k and 2k+1 in one byte, the even one below; they come as k and k+16."""
    low, high = codes & 15, codes >> 4
    return np.concatenate([half[:, 0::2] | half[:, 1::2] << 4 for half in (low, high)], axis=1)


def _nibbles_after_2(blocks: Blocks) -> Values:
    return _nibbles(blocks[:, 2:])


def _nibbles_after_4(blocks: Blocks) -> Values:
    return _nibbles(blocks[:, 4:])


def _signed_bytes(blocks: Blocks) -> Values:
    """Add 128 to signed bytes: a flip of the top bit."""
    return blocks[:, 2:] ^ np.uint8(128)


def _fives(blocks: Blocks, at: int) -> Values:
    """Give words of five bits: the fifth bits lie from `at` on, one bit an element, then the nibbles."""
    fifths = np.unpackbits(np.ascontiguousarray(blocks[:, at : at + 4]), axis=1, bitorder="little")
    codes = blocks[:, at + 4 :]
    return stream(np.concatenate([codes & 15, codes >> 4], axis=1) | fifths << 4, 5)


def _fives_after_2(blocks: Blocks) -> Values:
    return _fives(blocks, 2)


def _fives_after_4(blocks: Blocks) -> Values:
    return _fives(blocks, 4)


def stream(codes: Values, bits: int) -> Values:
    """Pack codes (n, elements) of some bits one behind the other, from the lowest bits on, into bytes."""
    places = np.arange(bits, dtype=np.uint8)
    return np.packbits((codes[:, :, None] >> places & 1).reshape(len(codes), -1), axis=1, bitorder="little")


PACKINGS: dict[str, Packing] = {
    "Q4_0": Packing(4, 8, _nibbles_after_2),
    "Q4_1": Packing(4, None, _nibbles_after_4),
    "Q5_0": Packing(5, 16, _fives_after_2),
    "Q5_1": Packing(5, None, _fives_after_4),
    "Q8_0": Packing(8, 128, _signed_bytes),
}


def mxfp4_words(blocks: Blocks) -> Values:
    """Give the codes of MXFP4 blocks, which are MLX's own; in order, as nibbles are."""
    return _nibbles(blocks[:, 1:])


def mxfp4_scales(blocks: Blocks) -> Values:
    """Give their powers of two, a byte each, as MLX has them."""
    return blocks[:, :1]


GROUP = 32


def dequantizer(kind: GgmlType) -> Callable[[Blocks], Values]:
    """Give the function from blocks to float32, which is the `gguf` package's."""

    def dequantize(blocks: Blocks) -> Values:
        package = need_gguf()
        number = package.GGMLQuantizationType[kind.name]
        # As one row: the package goes through rows in small groups.
        values: Values = package.quants.dequantize(np.ascontiguousarray(blocks).reshape(1, -1), number)
        return values.astype(np.float32, copy=False)

    return dequantize
