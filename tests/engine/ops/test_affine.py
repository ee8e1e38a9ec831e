"""MLX's affine packing: words and codes, and packing again what has changed."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.steps.affine import BITS, Affine
from weightloom.engine.steps.repacking import PackedWider, Repacked, Unpacked, packed, refitted, share_lost
from weightloom.engine.surgery.steps import Scaled

DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}
forms = st.builds(Affine, st.sampled_from(BITS), st.sampled_from([32, 64, 128]))
shapes = st.sampled_from([(1,), (3,), (2, 3)])
seeds = st.integers(0, 1000)


def values(form: Affine, rows: tuple[int, ...], seed: int) -> mx.array:
    chance = np.random.default_rng(seed)
    return mx.array(chance.standard_normal((*rows, 2 * form.group_size), dtype=np.float32))


def by_mlx(form: Affine, array: mx.array, dtype: str = "F32") -> tuple[mx.array, mx.array, mx.array]:
    words, scales, biases = mx.quantize(array.astype(DTYPES[dtype]), form.group_size, form.bits)
    return words, scales, biases


@given(forms, shapes, seeds)
def test_words_are_those_of_mlx(form: Affine, rows: tuple[int, ...], seed: int) -> None:
    words, scales, biases = by_mlx(form, values(form, rows, seed))
    assert mx.array_equal(form.words(form.codes(words)), words)
    theirs = mx.dequantize(words, scales, biases, form.group_size, form.bits)
    assert mx.allclose(form.unpack(words, scales, biases), theirs, atol=1e-6)


@given(forms, shapes, seeds, st.sampled_from(sorted(DTYPES)))
def test_what_does_not_change_stays_bit_for_bit(form: Affine, rows: tuple[int, ...], seed: int, dtype: str) -> None:
    before = by_mlx(form, values(form, rows, seed), dtype)
    again = refitted(form, before, form.unpack(*before))
    assert all(mx.array_equal(one, other) for one, other in zip(before, again, strict=True))


@given(forms, shapes, seeds, st.sampled_from(sorted(DTYPES)), st.floats(1e-4, 10))
def test_no_group_is_further_from_what_is_wanted_than_it_was(
    form: Affine, rows: tuple[int, ...], seed: int, dtype: str, size: float
) -> None:
    before = by_mlx(form, values(form, rows, seed), dtype)
    was = form.unpack(*before)
    wanted = was + size * values(form, rows, seed + 1)
    got = form.unpack(*refitted(form, before, wanted))
    groups = (*wanted.shape[:-1], -1, form.group_size)
    old, new = (mx.square(wanted - each).reshape(groups).sum(-1) for each in (was, got))
    assert mx.all(new <= old * (1 + 1e-4)).item()
    assert 0 <= share_lost(was, wanted, got) <= 1 + 1e-4


def test_a_group_of_one_value_has_any_code_and_takes_a_change() -> None:
    form = Affine(4, 32)
    before = (form.words(mx.full((1, 32), 9)), mx.zeros((1, 1)), mx.full((1, 1), 2.0))
    assert mx.array_equal(form.unpack(*before), mx.full((1, 32), 2.0))
    assert all(mx.array_equal(a, b) for a, b in zip(before, refitted(form, before, mx.full((1, 32), 2.0)), strict=True))
    wanted = mx.arange(32.0)[None]
    assert share_lost(form.unpack(*before), wanted, form.unpack(*refitted(form, before, wanted))) < 0.2


@given(forms, shapes, st.sampled_from(sorted(DTYPES)), seeds)
def test_inference_is_exact(form: Affine, rows: tuple[int, ...], dtype: str, seed: int) -> None:
    arrays = by_mlx(form, values(form, rows, seed), dtype)
    specs = tuple(TensorSpec(d, tuple(a.shape)) for d, a in zip(("U32", dtype, dtype), arrays, strict=True))
    twice, wider = (Scaled(0, 2.0, "scale"),), Affine(8, form.group_size)
    for step in (Repacked(0, form, twice), PackedWider(0, form, twice, wider), Unpacked(0, form, twice)):
        made = step.apply(arrays)
        dtypes = {mx.uint32: "U32", **{value: name for name, value in DTYPES.items()}}
        assert step.infer(specs) == tuple(TensorSpec(dtypes[a.dtype], tuple(a.shape)) for a in made)
        with pytest.raises(NotInvertible):
            step.inverse()


def test_packing_anew_is_as_mlx_packs() -> None:
    form = Affine(5, 64)
    array = values(form, (4,), 3)
    theirs, ours = by_mlx(form, array), packed(form, array, mx.float32)
    assert all(mx.allclose(one, other) for one, other in zip(theirs[1:], ours[1:], strict=True))
    apart = (mx.linalg.norm(form.unpack(*each) - array).item() for each in (ours, theirs))
    assert next(apart) <= next(apart) * 1.0001


@pytest.mark.parametrize(
    ("words", "scales", "biases"),
    [
        (("F32", (2, 8)), ("F32", (2, 2)), ("F32", (2, 2))),
        (("U32", (2, 8)), ("F32", (2, 3)), ("F32", (2, 3))),
        (("U32", (2, 8)), ("U8", (2, 2)), ("U8", (2, 2))),
        (("U32", (2, 8)), ("F32", (2, 2)), ("F16", (2, 2))),
    ],
)
def test_what_is_packed_otherwise_is_refused(
    words: tuple[str, tuple[int, ...]], scales: tuple[str, tuple[int, ...]], biases: tuple[str, tuple[int, ...]]
) -> None:
    with pytest.raises(PlanError, match="4 bits in groups of 32"):
        Affine(4, 32).dense(TensorSpec(*words), TensorSpec(*scales), TensorSpec(*biases))
