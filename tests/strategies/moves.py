"""Programs of moves: random chains over small tensors, and the data to run them on."""

from __future__ import annotations

from itertools import pairwise, takewhile
from math import prod
from random import Random
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Cut, Join, Move, Permute, Reorder, Reshape
from weightloom.engine.views.program import Program


def share(part: float) -> settings:
    """Settings for a law that takes only a part of the profile's examples, as its examples are large or many."""
    return settings(max_examples=max(2, int(settings().max_examples * part)))


MOVE_DTYPES = ("U8", "BF16", "F32", "I64", "C64", "F4", "F6_E2M3")


def some_shape(rng: Random, count: int) -> tuple[int, ...]:
    """A shape of `count` elements, with sizes of one here and there."""
    sizes, rest = [1] * rng.randint(0, 1), count
    if count == 0:
        sizes, rest = [0, *rng.choices(range(5), k=rng.randint(0, 3))], 1
    while rest > 1:
        size = rng.choice([n for n in range(2, rest + 1) if rest % n == 0])
        sizes, rest = [*sizes, size], rest // size
    return tuple(rng.sample(sizes, len(sizes)))


def some_cut(rng: Random, size: int) -> tuple[int, ...]:
    """Sizes of 1 to 4 parts that add up to `size`: equal, unequal, now and then empty."""
    equal = [count for count in (2, 3, 4) if size % count == 0]
    if equal and rng.random() < 0.6:
        count = rng.choice(equal)
        return (size // count,) * count
    ends = sorted(rng.choices(range(size + 1), k=rng.randint(1, 3)))
    return tuple(b - a for a, b in pairwise([0, *ends, size]))


def cuts_of(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Sizes of 1 to 4 parts that add up to `size`: unequal and empty ones too."""
    ends = st.lists(st.integers(0, size), max_size=3).map(sorted)
    return ends.map(lambda found: tuple(b - a for a, b in pairwise([0, *found, size])))


def some_moves(rng: Random, specs: tuple[TensorSpec, ...]) -> tuple[Move, ...]:
    """One move, or a few that belong together, that fit tensors of these specs."""
    at = max(range(len(specs)), key=lambda slot: (prod(specs[slot].shape) > 1) + rng.random())
    shape = specs[at].shape
    kind = rng.choice(("reshape", "permute", "cut", "join", "shuffle", "reorder"))
    if kind == "reshape" or not shape:
        return (Reshape(at, shape, some_shape(rng, prod(shape))),)
    if kind == "reorder":
        return (Reorder(tuple(rng.sample(range(len(specs)), len(specs)))),)
    if kind == "permute":
        return (Permute(at, tuple(rng.sample(range(len(shape)), len(shape)))),)
    dim = rng.randrange(len(shape))
    if kind == "join" and (join := longest_join(specs, at, dim)):
        return (join,)
    if kind == "cut" and len(specs) < 6:
        return (Cut(at, dim, some_cut(rng, shape[dim])),)
    return shuffled_parts(rng, specs, at, dim)


def shuffled_parts(rng: Random, specs: tuple[TensorSpec, ...], at: int, dim: int) -> tuple[Move, ...]:
    """Parts of one dim put in another order; as many tensors as before."""
    sizes = some_cut(rng, specs[at].shape[dim])
    parts = range(at, at + len(sizes))
    order = rng.sample(parts, len(parts))
    others = range(parts.stop, len(specs) - 1 + len(sizes))
    moved = tuple(sizes[part - at] for part in order)
    return Cut(at, dim, sizes), Reorder((*range(at), *order, *others)), Join(at, dim, moved)


def longest_join(specs: tuple[TensorSpec, ...], at: int, dim: int) -> Join | None:
    """The join of all tensors from `at` on that fit along `dim`, if there are two or more."""

    def rest(spec: TensorSpec) -> tuple[int, ...]:
        return spec.shape[:dim] + spec.shape[dim + 1 :]

    first = specs[at]
    fits = takewhile(lambda s: len(s.shape) == len(first.shape) and rest(s) == rest(first), specs[at:])
    fitting = list(fits)
    return Join(at, dim, tuple(s.shape[dim] for s in fitting)) if len(fitting) > 1 else None


@st.composite
def move_programs(draw: st.DrawFn, most: int = 10) -> Program:
    """Chains of moves over 1 to 3 tensors of one dtype; now and then empty or 0-d ones.

    Chains come from a seed, which spreads them better than drawing each number; a failing one shrinks in length.
    """
    dtype = draw(st.sampled_from(MOVE_DTYPES))
    length = draw(st.integers(0, most))
    rng = Random(draw(st.integers(0, 1 << 32)))
    start = now = some_specs(rng, dtype)
    moves: list[Move] = []
    for _ in range(length):
        for move in some_moves(rng, now):
            now = move.infer(now)
            moves.append(move)
    return Program(start, tuple(moves))


def some_specs(rng: Random, dtype: str) -> tuple[TensorSpec, ...]:
    """One to three tensors, alike more often than not; sub-byte ones fill whole bytes along the last dim."""
    last = (2, 3, 4, 6) if DTYPES[dtype].bits >= 8 else (24,)
    rare = rng.choice(((), (0, 3), (2, 0, 2))) if rng.random() < 0.1 and len(last) > 1 else None
    outer = rng.choices((1, 2, 3, 4, 6), k=rng.randint(0, 2))
    common = (*outer, rng.choice(last)) if rare is None else rare
    other = (*outer[:1], rng.choice(last))
    shapes = [common if rng.random() < 0.7 else other for _ in range(rng.randint(1, 3))]
    return tuple(TensorSpec(dtype, shape) for shape in shapes)


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
