"""Attention of which a rank has some heads: what the parts make adds up to what the whole makes."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.architectures.gpt_neox import NeoXAttention
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.gated_attention import GatedAttention


@pytest.mark.parametrize(
    ("kind", "kv_heads", "last"),
    [(Attention, 2, "o_proj"), (GatedAttention, 2, "o_proj"), (NeoXAttention, 4, "dense")],
)
def test_parts_add_up(kind: type[Attention], kv_heads: int, last: str) -> None:
    shape = AttentionShape(32, 4, kv_heads, 8)
    whole, x = kind(shape, None), mx.random.normal((2, 5, 32), key=mx.random.key(1))
    total = mx.zeros_like(x)
    for rank in (0, 1):
        part = kind(shape, None)
        for name, layer in whole.children().items():
            if "weight" in layer:
                part[name].weight = mx.split(layer.weight, 2, axis=int(name == last))[rank]
        total += part(x, "causal", NoCache())
    np.testing.assert_allclose(np.array(total), np.array(whole(x, "causal", NoCache())), atol=1e-5)
