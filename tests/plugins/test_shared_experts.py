"""Experts with a shared layer beside them, against what each of the two makes alone."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.activations import relu
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layers.shared_experts import GatedSharedSparseMlp, SharedSparseMlp

COUNT, HIDDEN, INNER = 5, 8, 6


def random(*shape: int) -> mx.array:
    return mx.array(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def filled(layer: SparseMlp) -> SparseMlp:
    layer.experts.gate_up_proj = random(COUNT, 2 * INNER, HIDDEN)
    layer.experts.down_proj = random(COUNT, HIDDEN, INNER)
    layer.gate.weight = random(COUNT, HIDDEN)
    return layer


def experts() -> Experts:
    return Experts(COUNT, HIDDEN, INNER, relu)


def of_shared(shared: GatedMlp, x: np.ndarray) -> np.ndarray:
    gate, up, down = (np.array(shared[name].weight) for name in ("gate_proj", "up_proj", "down_proj"))
    return (np.maximum(x @ gate.T, 0) * (x @ up.T)) @ down.T


@pytest.mark.parametrize("gated", [False, True])
def test_values(gated: bool) -> None:
    shared, x = GatedMlp(HIDDEN, 2 * INNER, relu), random(2, 3, HIDDEN)
    kind = GatedSharedSparseMlp if gated else SharedSparseMlp
    both = filled(kind(experts(), softmax_over_chosen, 2, shared, "shared_expert"))
    share = np.ones((2, 3, 1))
    if gated:
        both.shared_expert_gate.weight = random(1, HIDDEN)
        share = 1 / (1 + np.exp(-np.array(x) @ np.array(both.shared_expert_gate.weight).T))
    alone = filled(SparseMlp(experts(), softmax_over_chosen, 2))
    wanted = np.array(alone(x)) + share * of_shared(shared, np.array(x))
    np.testing.assert_allclose(np.array(both(x)), wanted, atol=1e-4)


def test_it_has_the_names_of_the_family() -> None:
    shared = GatedMlp(HIDDEN, INNER, relu)
    layer = GatedSharedSparseMlp(experts(), softmax_over_chosen, 2, shared, "common", gate="router")
    assert set(layer.parameters()) == {"experts", "router", "common", "common_gate"}
