"""Heads whose rows or columns count as if of length 1, against NumPy, plain and packed."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.norm_head import ColumnNormHeadLM, RowNormHeadLM

HIDDEN, VOCABULARY = 32, 64


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("kind", "axis"), [(RowNormHeadLM, 1), (ColumnNormHeadLM, 0)])
def test_lengths_are_divided_out(kind: type[CausalLM], axis: int, packed: bool) -> None:
    model = kind(Decoder(VOCABULARY, HIDDEN, nn.RMSNorm(HIDDEN), []), tied=False)
    random = np.random.default_rng(6)
    model.lm_head.weight = mx.array(random.standard_normal((VOCABULARY, HIDDEN)).astype(np.float32))
    if packed:
        model.lm_head = nn.QuantizedLinear.from_linear(model.lm_head, 32, 8)
        head = model.lm_head
        matrix = np.array(mx.dequantize(head.weight, head.scales, head.biases, 32, 8))
    else:
        matrix = np.array(model.lm_head.weight)
    hidden = random.standard_normal((2, 3, HIDDEN)).astype(np.float32)
    wanted = hidden @ (matrix / np.linalg.norm(matrix, axis=axis, keepdims=True)).T
    np.testing.assert_allclose(np.array(model.head(mx.array(hidden))), wanted, rtol=1e-4, atol=1e-4)


def test_they_are_worked_out_again_for_other_weights() -> None:
    model = RowNormHeadLM(Decoder(VOCABULARY, HIDDEN, nn.RMSNorm(HIDDEN), []), tied=False)
    hidden, before = mx.ones((1, 1, HIDDEN)), mx.array(model.lm_head.weight)
    first = model.head(hidden)
    model.lm_head.weight = before * 2
    assert mx.allclose(model.head(hidden), first, atol=1e-5).item()
