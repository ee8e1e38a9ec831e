"""Blocks of 256 elements in eight groups of 32, Q4_K and Q5_K, as MLX's affine form: codes, scales, biases.

A block has a float16 factor of its groups' scales and one of their minima, then 12 bytes with the six bits of each of
the eight scales and minima, then codes: value = d * scale * code - dmin * minimum. The products of a float16 and six
bits are exact in float32, and not in float16. Block forms: the ggml project, `ggml-common.h`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weightloom.engine.gguf.blocks import Blocks, Values, half, stream

GROUPS = 8
_SIXES, _CODES = slice(4, 16), 128


@dataclass(frozen=True, slots=True)
class SuperPacking:
    """One type of such blocks: the bits of a code, and how the codes of a block are packed in words."""

    bits: int
    words: Callable[[Blocks], Values]
    groups: int = GROUPS

    def wide_scales(self, blocks: Blocks) -> Values:
        """Give the scales of each block's groups in float32, (n, 8)."""
        return half(blocks, 0).astype(np.float32)[:, None] * _sixes(blocks)[0]

    def wide_biases(self, blocks: Blocks) -> Values:
        """Give the biases of each block's groups in float32, (n, 8)."""
        return half(blocks, 2).astype(np.float32)[:, None] * -_sixes(blocks)[1]


def _sixes(blocks: Blocks) -> tuple[Values, Values]:
    """Give the six bits of each scale and minimum as float32; the last four of each lie in two parts."""
    packed = blocks[:, _SIXES]
    first, second, third = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], axis=1)
    minima = np.concatenate([second & 63, (third >> 4) | (second >> 6) << 4], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _fours(blocks: Blocks) -> Values:
    """Give four bits of each element, (n, 256): of 32 bytes the low halves, then the high ones."""
    codes = blocks[:, -_CODES:].reshape(-1, 4, 1, 32)
    return np.concatenate([codes & 15, codes >> 4], axis=2).reshape(len(blocks), -1)


def four_bits(blocks: Blocks) -> Values:
    """Give the words of Q4_K's codes."""
    return stream(_fours(blocks), 4)


def five_bits(blocks: Blocks) -> Values:
    """Give the words of Q5_K's codes; bit `g` of byte `k` is the fifth bit of element `k` of group `g`."""
    fifths = blocks[:, 16:48][:, None, :] >> np.arange(GROUPS, dtype=np.uint8)[None, :, None] & 1
    return stream(_fours(blocks) | fifths.reshape(len(blocks), -1) << 4, 5)


SUPER_PACKINGS = {"Q4_K": SuperPacking(4, four_bits), "Q5_K": SuperPacking(5, five_bits)}
