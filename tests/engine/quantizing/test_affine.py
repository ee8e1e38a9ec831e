"""Packed matrices of which some values change: words and codes, each group as near as it can come, and the steps."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.quantizing.affine import codes_of, words_of
from weightloom.engine.quantizing.changing import LeftAsFloats, PackedWider, Repacked, as_floats
from weightloom.engine.quantizing.quantization import AFFINE, AFFINE_BITS, BLOCK_MODES, Quantization
from weightloom.engine.quantizing.refitting import floats_of, packed, refitted
from weightloom.engine.spec import TensorSpec
from weightloom.engine.surgery.fuse import Factors, LowRankAdded, Taken
from weightloom.engine.surgery.lengths import Lengths
from weightloom.engine.surgery.steps import Scaled
from weightloom.engine.views.row_blocks import row_blocks

DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}
NAMES = {mx.uint32: "U32", mx.uint8: "U8", **{value: name for name, value in DTYPES.items()}}
affine = st.builds(Quantization, st.sampled_from(AFFINE_BITS), st.sampled_from([32, 64, 128]))
blocks = st.sampled_from([Quantization(bits, size, mode) for mode, (bits, size) in BLOCK_MODES.items()])
ways = st.one_of(affine, blocks)
shapes = st.sampled_from([(1,), (3,), (2, 3)])
seeds = st.integers(0, 1000)
dtypes = st.sampled_from(sorted(DTYPES))


def values(how: Quantization, rows: tuple[int, ...], seed: int) -> mx.array:
    chance = np.random.default_rng(seed)
    return mx.array(chance.standard_normal((*rows, max(64, how.group_size)), dtype=np.float32))


def by_mlx(how: Quantization, array: mx.array, dtype: str = "F32") -> tuple[mx.array, ...]:
    return tuple(mx.quantize(array.astype(DTYPES[dtype]), how.group_size, how.bits, how.mode))


def same(one: tuple[mx.array, ...], other: tuple[mx.array, ...]) -> bool:
    return all(bool(mx.array_equal(a, b)) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


@given(affine, shapes, seeds)
def test_words_are_those_of_mlx(how: Quantization, rows: tuple[int, ...], seed: int) -> None:
    words, scales, biases = by_mlx(how, values(how, rows, seed))
    assert mx.array_equal(words_of(codes_of(words, how), how), words)
    theirs = mx.dequantize(words, scales, biases, how.group_size, how.bits)
    assert mx.allclose(floats_of((words, scales, biases), how), theirs, atol=1e-6)


@given(ways, shapes, seeds, dtypes)
def test_what_does_not_change_stays_bit_for_bit(
    how: Quantization, rows: tuple[int, ...], seed: int, dtype: str
) -> None:
    before = by_mlx(how, values(how, rows, seed), dtype)
    assert same(before, refitted(before, floats_of(before, how), how))


@given(ways, shapes, seeds, dtypes, st.floats(1e-4, 10))
def test_no_group_is_further_from_what_is_wanted_than_it_was(
    how: Quantization, rows: tuple[int, ...], seed: int, dtype: str, size: float
) -> None:
    before = by_mlx(how, values(how, rows, seed), dtype)
    was = floats_of(before, how)
    wanted = was + size * values(how, rows, seed + 1)
    got = floats_of(refitted(before, wanted, how), how)
    groups = (*wanted.shape[:-1], -1, how.group_size)
    old, new = (mx.square(wanted - each).reshape(groups).sum(-1) for each in (was, got))
    assert mx.all(new <= old * (1 + 1e-4)).item()


def test_a_group_of_one_value_has_any_code_and_takes_a_change() -> None:
    how = Quantization(4, 32)
    before = (words_of(mx.full((1, 1, 32), 9), how), mx.zeros((1, 1)), mx.full((1, 1), 2.0))
    assert mx.array_equal(floats_of(before, how), mx.full((1, 32), 2.0))
    assert same(before, refitted(before, mx.full((1, 32), 2.0), how))
    wanted = mx.arange(32.0)[None]
    assert mx.abs(floats_of(refitted(before, wanted, how), how) - wanted).max().item() < 1.1


@given(ways, shapes, dtypes, seeds)
def test_inference_is_exact(how: Quantization, rows: tuple[int, ...], dtype: str, seed: int) -> None:
    arrays = by_mlx(how, values(how, rows, seed), dtype)
    specs = tuple(TensorSpec(NAMES[a.dtype], tuple(a.shape)) for a in arrays)
    twice, floats = (Scaled(0, 2.0, "scale"),), "BF16" if how.mode != AFFINE else dtype
    steps = [Repacked(0, how, twice), LeftAsFloats(0, how, twice, floats)]
    wider = [PackedWider(0, how, twice, Quantization(8, how.group_size))] if how.mode == AFFINE else []
    for step in (*steps, *wider):
        made = step.apply(arrays)
        assert step.arity == len(arrays)
        assert step.infer(specs) == tuple(TensorSpec(NAMES[a.dtype], tuple(a.shape)) for a in made)
        with pytest.raises(NotInvertible):
            step.inverse()


def test_packing_anew_is_as_mlx_packs() -> None:
    how = Quantization(5, 64)
    array = values(how, (4,), 3)
    theirs, ours = by_mlx(how, array), packed(array, how, mx.float32)
    assert all(mx.allclose(one, other) for one, other in zip(theirs[1:], ours[1:], strict=True))
    apart = (mx.linalg.norm(floats_of(each, how) - array).item() for each in (ours, theirs))
    assert next(apart) <= next(apart) * 1.0001


@pytest.mark.parametrize("scales", [("F32", (2, 3)), ("U8", (2, 2)), ("F32", (2,))])
def test_what_is_packed_otherwise_is_refused(scales: tuple[str, tuple[int, ...]]) -> None:
    with pytest.raises(PlanError, match="4 bits in groups of 32"):
        as_floats(Quantization(4, 32), (TensorSpec("U32", (2, 8)), TensorSpec(*scales), TensorSpec(*scales)))


@settings(max_examples=max(12, settings().max_examples // 5))
@given(ways, st.sampled_from([(3,), (700,), (2, 3), (2, 2, 300)]), seeds, st.booleans())
def test_some_rows_at_a_time_are_as_all_at_once(
    how: Quantization, rows: tuple[int, ...], seed: int, decomposed: bool
) -> None:
    array = mx.concatenate([values(how, rows, seed)] * 8, axis=-1)
    parts, rank = by_mlx(how, array), 2
    chance = np.random.default_rng(seed)
    a, b = (
        mx.array(chance.standard_normal(s, dtype=np.float32))
        for s in ((*rows[:-1], rank, array.shape[-1]), (*rows, rank))
    )
    lengths = Lengths(mx.array(chance.random(rows, dtype=np.float32)) + 1, -1) if decomposed else None
    step = LowRankAdded(0, (Factors(a, b, 0.5, lengths), Factors(2 * a, b, 0.25)))
    whole = refitted(parts, step.apply((floats_of(parts, how),))[0], how)
    (words, *_) = Repacked(0, how, (step,)).apply(parts)
    # Products may be summed in another order.
    assert (words != whole[0]).sum().item() <= 1 + words.size // 50
    taken = Taken(0, array * 2)
    assert same(Repacked(0, how, (taken,)).apply(parts), refitted(parts, array * 2, how))


def test_lengths_of_columns_need_all_rows() -> None:
    step = LowRankAdded(0, (Factors(mx.ones((1, 64)), mx.ones((4, 1)), 1.0, Lengths(mx.ones((64,)), -2)),))
    how = Quantization(4, 32)
    parts = by_mlx(how, values(how, (4,), 1))
    (block, *_) = row_blocks((4, 64))
    assert step.of_rows(block) is None
    assert same(Repacked(0, how, (step,)).apply(parts), refitted(parts, step.apply((floats_of(parts, how),))[0], how))
