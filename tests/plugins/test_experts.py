"""Expert layers against each token's experts worked out one by one."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.activations import relu
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.layers.routing import Router, softmax_over_all, softmax_over_chosen

COUNT, HIDDEN, INNER = 5, 8, 6


def random(*shape: int) -> mx.array:
    return mx.array(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


def layer(router: Router, k: int) -> SparseMlp:
    made = SparseMlp(Experts(COUNT, HIDDEN, INNER, relu), router, k)
    made.experts.gate_up_proj = random(COUNT, 2 * INNER, HIDDEN)
    made.experts.down_proj = random(COUNT, HIDDEN, INNER)
    made.gate.weight = random(COUNT, HIDDEN)
    return made


def one_by_one(sparse: SparseMlp, x: np.ndarray, k: int, over_chosen: bool) -> np.ndarray:
    gate_up, down = np.array(sparse.experts.gate_up_proj), np.array(sparse.experts.down_proj)
    out = np.zeros_like(x)
    for place in np.ndindex(x.shape[:2]):
        scores = np.array(sparse.gate.weight) @ x[place]
        shares = np.exp(scores - scores.max())
        chosen = np.argsort(-scores)[:k]
        shares /= shares[chosen].sum() if over_chosen else shares.sum()
        for expert in chosen:
            both = gate_up[expert] @ x[place]
            out[place] += shares[expert] * (down[expert] @ (np.maximum(both[:INNER], 0) * both[INNER:]))
    return out


@pytest.mark.parametrize("k", [1, 2, COUNT])
@pytest.mark.parametrize(("router", "over_chosen"), [(softmax_over_chosen, True), (softmax_over_all, False)])
def test_values(router: Router, over_chosen: bool, k: int) -> None:
    sparse, x = layer(router, k), random(2, 7, HIDDEN)
    np.testing.assert_allclose(np.array(sparse(x)), one_by_one(sparse, np.array(x), k, over_chosen), atol=1e-4)


def test_the_dtype_stays() -> None:
    sparse = layer(softmax_over_chosen, 2)
    sparse.set_dtype(mx.bfloat16)
    assert sparse(random(1, 3, HIDDEN).astype(mx.bfloat16)).dtype == mx.bfloat16


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16], ids=str)
@pytest.mark.parametrize("length", [1, 40])
def test_halves_are_those_of_float32_rounded(length: int, dtype: mx.Dtype) -> None:
    sparse, x = layer(softmax_over_chosen, 2), random(1, length, HIDDEN).astype(dtype)
    sparse.set_dtype(dtype)
    got = sparse(x)
    assert got.dtype == dtype
    sparse.set_dtype(mx.float32)
    want = np.array(sparse(x.astype(mx.float32)))
    np.testing.assert_allclose(np.array(got.astype(mx.float32)), want, atol=0.02 * np.abs(want).max())


@pytest.mark.parametrize(("how", "biased"), [(Quantization(4, 32), True), (Quantization(8, 32, "mxfp8"), False)])
def test_packed_stacks_are_as_if_unpacked(how: Quantization, biased: bool) -> None:
    plain = Experts(3, 64, 32, relu)
    plain.gate_up_proj, plain.down_proj = random(3, 64, 64), random(3, 64, 32)
    packed = plain.packed("gate_up_proj", how).packed("down_proj", how)
    for name in ("gate_up_proj", "down_proj"):
        parts = mx.quantize(plain[name], how.group_size, how.bits, how.mode)
        names = [name, f"{name}_scales", f"{name}_biases"][: len(parts)]
        packed.update(dict(zip(names, parts, strict=True)))
        assert (f"{name}_biases" in packed) is biased
        plain[name] = mx.dequantize(*parts, group_size=how.group_size, bits=how.bits, mode=how.mode).astype(mx.float32)
    chosen = mx.array([[0, 2], [1, 2], [2, 0]])
    x = random(3, 64)
    np.testing.assert_allclose(np.array(packed(x, chosen)), np.array(plain(x, chosen)), rtol=1e-3, atol=0.2)


def test_one_stack_can_be_packed_alone() -> None:
    packed = Experts(3, 64, 32, relu).packed("down_proj", Quantization(4, 32))
    assert {name: array.dtype for name, array in packed.parameters().items()} == {
        "gate_up_proj": mx.float32,
        "down_proj": mx.uint32,
        "down_proj_scales": mx.float32,
        "down_proj_biases": mx.float32,
    }
    assert packed(random(2, 64), mx.array([[0], [1]])).shape == (2, 1, 64)
