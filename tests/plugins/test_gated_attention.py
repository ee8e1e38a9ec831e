"""Gated attention against queries, keys, values and gates worked out head by head in NumPy."""

import mlx.core as mx
import numpy as np

from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.gated_attention import GatedAttention
from weightloom.plugins.layers.norms import rms_norm

HIDDEN, HEADS, GROUPS, DIM, LENGTH = 8, 4, 2, 6, 5


def test_values() -> None:
    random = np.random.default_rng(1)
    layer = GatedAttention(AttentionShape(HIDDEN, HEADS, GROUPS, DIM), None, rms_norm(1e-6))
    weights = {}
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        weights[name] = random.standard_normal(layer[name].weight.shape).astype(np.float32)
        layer[name].weight = mx.array(weights[name])
    x = random.standard_normal((1, LENGTH, HIDDEN)).astype(np.float32)
    both = (x[0] @ weights["q_proj"].T).reshape(LENGTH, HEADS, 2 * DIM)
    keys, values = ((x[0] @ weights[name].T).reshape(LENGTH, GROUPS, DIM) for name in ("k_proj", "v_proj"))
    mixed = np.zeros((LENGTH, HEADS, DIM))
    for now, head in np.ndindex(LENGTH, HEADS):
        group = head // (HEADS // GROUPS)
        query, gate = normed(both[now, head, :DIM]), both[now, head, DIM:]
        scores = np.exp([query @ normed(keys[at, group]) * DIM**-0.5 for at in range(now + 1)])
        mixed[now, head] = (scores / scores.sum()) @ values[: now + 1, group] / (1 + np.exp(-gate))
    wanted = mixed.reshape(LENGTH, -1) @ weights["o_proj"].T
    np.testing.assert_allclose(np.array(layer(mx.array(x), "causal", NoCache()))[0], wanted, atol=2e-5)


def normed(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(x**2) + 1e-6)
