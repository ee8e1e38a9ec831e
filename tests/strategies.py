"""Hypothesis strategies and the data that goes with them, shared by all tests; one section a subject."""

from __future__ import annotations

from itertools import pairwise, takewhile
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.moves import Cut, Join, Move, Permute, Reorder, Reshape
from weightloom.engine.program import Program
from weightloom.engine.spec import TensorSpec

# ---------------------------------------------------------------------------
# Programs of moves: random chains over small tensors, and the data to run them on
# ---------------------------------------------------------------------------

MOVE_DTYPES = ("U8", "BF16", "F32", "I64", "C64", "F4", "F6_E2M3")


def shapes_of(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of `count` elements, with sizes of one here and there."""

    @st.composite
    def shape(draw: st.DrawFn) -> tuple[int, ...]:
        if count == 0:
            sizes = draw(st.lists(st.integers(0, 4), max_size=3))
            return tuple(draw(st.permutations([0, *sizes])))
        sizes, rest = [], count
        while rest > 1:
            size = draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0]))
            sizes, rest = [*sizes, size], rest // size
        ones = [1] * draw(st.integers(0, 1 if sizes else 2))
        return tuple(draw(st.permutations([*sizes, *ones])))

    return shape()


def cuts_of(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Sizes of 1 to 4 parts, unequal and empty ones too, that add up to `size`."""
    ends = st.lists(st.integers(0, size), max_size=3).map(sorted)
    return ends.map(lambda found: tuple(b - a for a, b in pairwise([0, *found, size])))


@st.composite
def move_for(draw: st.DrawFn, specs: tuple[TensorSpec, ...]) -> Move:
    """One move that fits tensors of these specs."""
    at = draw(st.integers(0, len(specs) - 1))
    shape = specs[at].shape
    made: list[st.SearchStrategy[Move]] = [
        shapes_of(prod(shape)).map(lambda new: Reshape(at, shape, new)),
        st.permutations(range(len(shape))).map(lambda axes: Permute(at, tuple(axes))),
        st.permutations(range(len(specs))).map(lambda order: Reorder(tuple(order))),
    ]
    if shape:
        dim = draw(st.integers(0, len(shape) - 1))
        made.append(cuts_of(shape[dim]).map(lambda sizes: Cut(at, dim, sizes)))
        made += [st.just(join)] * 3 if (join := longest_join(specs, at, dim)) else []
    return draw(st.one_of(made))


def longest_join(specs: tuple[TensorSpec, ...], at: int, dim: int) -> Join | None:
    """The join of all tensors from `at` on that fit along `dim`, if there are two or more."""

    def rest(spec: TensorSpec) -> tuple[int, ...]:
        return spec.shape[:dim] + spec.shape[dim + 1 :]

    first = specs[at]
    fits = takewhile(lambda s: len(s.shape) == len(first.shape) and rest(s) == rest(first), specs[at:])
    fitting = list(fits)
    return Join(at, dim, tuple(s.shape[dim] for s in fitting)) if len(fitting) > 1 else None


@st.composite
def move_programs(draw: st.DrawFn, max_moves: int = 9) -> Program:
    """Chains of moves over 1 to 4 tensors of one dtype, empty and 0-d ones included."""
    dtype = draw(st.sampled_from(MOVE_DTYPES))
    last = draw(st.sampled_from((0, 1, 2, 3, 4, 8, 12))) if DTYPES[dtype].bits >= 8 else 24
    sizes = st.lists(st.sampled_from((1, 2, 3, 4, 6)), max_size=2)
    shape = st.builds(lambda outer: (*outer, last), sizes)
    if DTYPES[dtype].bits >= 8:
        shape = st.one_of(shape, st.just(()))
    common = draw(shape)
    specs = tuple(draw(st.lists(st.one_of(st.just(common), shape), min_size=1, max_size=4)))
    start = now = tuple(TensorSpec(dtype, found) for found in specs)
    moves: list[Move] = []
    for _ in range(draw(st.integers(0, max_moves))):
        move = draw(move_for(now))
        now = move.infer(now)
        moves.append(move)
        if len(now) > 12:
            break
    return Program(start, tuple(moves))


def elements_of(spec: TensorSpec, seed: int) -> np.ndarray[Any, Any]:
    """Random bit patterns (NaNs among them), one unsigned integer an element."""
    bits = DTYPES[spec.dtype or ""].bits
    top = (1 << bits) - 1
    found = np.random.default_rng(seed).integers(0, top, spec.shape, np.uint64, endpoint=True)
    return np.asarray(found).astype(f"u{max(1, bits // 8)}")


def packed_bytes(elements: np.ndarray[Any, Any], dtype: str) -> bytes:
    """The tensor's data; sub-byte elements from the low bits up."""
    bits = DTYPES[dtype].bits
    if bits >= 8:
        return elements.tobytes()
    planes = np.unpackbits(elements.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
    return np.packbits(planes.reshape(-1), bitorder="little").tobytes()
