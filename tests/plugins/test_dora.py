"""Changes of direction and length beside parameters: against the same layer with the changed matrix in it."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from tests.plugins.test_lora import HOW, attach_one, equal, low_rank
from weightloom.engine.surgery.fuse import Factors
from weightloom.engine.surgery.lengths import Lengths
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.dora import decomposed
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.lora import LowRank
from weightloom.plugins.layers.terms import Term
from weightloom.plugins.modules.adapters import attach, dense_weight
from weightloom.plugins.modules.quantized import quantize

AXES = [-1, -2]


def lengths(shape: tuple[int, ...], axis: int) -> Lengths:
    kept = shape[:-1] if axis == -1 else (*shape[:-2], shape[-1])
    return Lengths(mx.random.uniform(0.5, 2, kept, key=mx.random.key(9)), axis)


def term_of(weight: mx.array, axis: int) -> tuple[Any, Term, np.ndarray[Any, Any]]:
    """Give a product, the term that it is part of, and the changed weight, worked out in numpy."""
    product, wanted = low_rank(weight.shape), lengths(weight.shape, axis)
    whole = np.array(weight).astype(np.float64) + product.scale * (np.array(product.b) @ np.array(product.a))
    directed = whole / np.linalg.norm(whole, axis=axis, keepdims=True)
    return product, decomposed(product, wanted, weight), directed * np.expand_dims(np.array(wanted.values), axis)


def close(one: mx.array, other: Any) -> bool:
    return np.allclose(np.array(one), np.array(other), atol=1e-4)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("axis", AXES)
def test_a_linear_layer(axis: int, bias: bool) -> None:
    """The bias is no part of what is brought to a length."""
    layer, x = nn.Linear(5, 3, bias), mx.random.normal((2, 4, 5))
    plain = layer(x)
    product, term, changed = term_of(layer.weight, axis)
    attach_one(layer, "weight", term)
    wanted = np.array(x) @ changed.T + (np.array(layer.bias) if bias else 0)
    assert close(layer(x), wanted)
    product.dial.scale = 0.25
    assert close(layer(x), np.array(plain) + 0.25 * (wanted - np.array(plain)))
    product.dial.scale = 0.0
    assert equal(layer(x), plain)


@pytest.mark.parametrize("axis", AXES)
def test_an_embedding_and_its_use_as_a_head(axis: int) -> None:
    layer, tokens, x = nn.Embedding(6, 4), mx.array([[5, 0, 2]]), mx.random.normal((1, 3, 4))
    _, term, changed = term_of(layer.weight, axis)
    attach_one(layer, "weight", term)
    assert close(layer(tokens), changed[np.array(tokens)])
    assert close(layer.as_linear(x), np.array(x) @ changed.T)


@pytest.mark.parametrize("tokens", [3, 50])
@pytest.mark.parametrize("axis", AXES)
def test_experts_few_tokens_and_many(axis: int, tokens: int) -> None:
    layer, merged = (Experts(4, 8, 6, activation("silu")) for _ in range(2))
    layer.update({key: mx.random.normal(array.shape) for key, array in layer.parameters().items()})
    merged.update(layer.parameters())
    product, term, changed = term_of(layer.dense("gate_up_proj"), axis)
    merged.gate_up_proj = mx.array(changed.astype(np.float32))
    x, chosen = mx.random.normal((tokens, 8)), mx.random.randint(0, 4, (tokens, 2))
    plain = layer(x, chosen)
    attach_one(layer, "gate_up_proj", term)
    assert np.allclose(np.array(layer(x, chosen)), np.array(merged(x, chosen)), atol=1e-3)
    product.dial.scale = 0.0
    assert equal(layer(x, chosen), plain)


def test_the_sum_of_several_does_not_depend_on_their_order() -> None:
    weight = mx.random.normal((5, 4))
    terms = [term_of(weight, axis)[1] for axis in AXES] + [low_rank((5, 4), seed=3)]
    made = []
    for order in (terms, terms[::-1]):
        layer = nn.Linear(4, 5, bias=False)
        layer.weight = weight
        attach_one(layer, "weight", *order)
        made.append(layer(mx.ones((1, 4))))
    assert close(*made)


def test_packed_weights_are_unpacked_for_their_lengths() -> None:
    root = nn.Module()
    root.linear, root.embedding, root.experts = (
        nn.Linear(32, 4),
        nn.Embedding(6, 32),
        Experts(3, 32, 32, activation("silu")),
    )
    plain = {name: dense_weight(root, name) for name in ("linear.weight", "embedding.weight", "experts.down_proj")}
    nn.quantize(root, 32, 8)
    quantize(root, {"experts.down_proj": HOW})
    unpacked = {name: dense_weight(root, name) for name in plain}
    assert all(np.allclose(np.array(unpacked[name]), np.array(array), atol=0.05) for name, array in plain.items())
    assert equal(dense_weight(root, "experts.gate_up_proj"), root.experts.gate_up_proj)
    _, term, changed = term_of(unpacked["linear.weight"], -1)
    attach(root, {"linear.weight": (term,)})
    x = mx.random.normal((2, 32))
    assert close(root.linear(x), np.array(x) @ changed.T + np.array(root.linear.bias))


@pytest.mark.parametrize("axis", AXES)
def test_what_is_added_to_a_weight_is_what_the_layer_adds(axis: int) -> None:
    weight = mx.random.normal((3, 5, 4))
    product, _, changed = term_of(weight, axis)
    made = Factors(product.a, product.b, product.scale, lengths(weight.shape, axis), share=0.5)
    assert close(weight + made.added_to(weight), (np.array(weight) + changed) / 2)


def test_a_row_of_zeros_has_no_direction_and_stays() -> None:
    weight, nothing = (
        mx.array([[0.0, 0.0], [3.0, 4.0]]),
        LowRank(mx.zeros((1, 2)), mx.zeros((2, 1)), 1.0, low_rank((2, 2)).dial),
    )
    term = decomposed(nothing, Lengths(mx.array([2.0, 10.0]), -1), weight)
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = weight
    attach_one(layer, "weight", term)
    assert close(layer(mx.array([[1.0, 1.0]])), [[0, 14]])
