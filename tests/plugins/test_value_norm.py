"""Attention whose values are normed, and are keys: against one token's mix, which is its own values."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.value_norm import KeysAsValues, ValueNormAttention

SHAPE, EPS = AttentionShape(16, 4, 2, 8), 1e-6


@pytest.mark.parametrize(("kind", "source"), [(ValueNormAttention, "v_proj"), (KeysAsValues, "k_proj")])
def test_a_token_alone_gets_its_own_normed_values(kind: type[ValueNormAttention], source: str) -> None:
    attention = kind(SHAPE, None, EPS)
    x = np.random.default_rng(0).normal(size=(1, 1, 16)).astype(np.float32)
    values = (np.array(attention[source].weight) @ x[0, 0]).reshape(2, 8)
    normed = values / np.sqrt((values**2).mean(axis=-1, keepdims=True) + EPS)
    wanted = np.array(attention.o_proj.weight) @ normed.repeat(2, axis=0).flatten()
    np.testing.assert_allclose(np.array(attention(mx.array(x), None, NoCache()))[0, 0], wanted, atol=1e-5)


def test_values_that_are_keys_have_no_matrix() -> None:
    assert "v_proj" not in KeysAsValues(SHAPE, None, EPS)
