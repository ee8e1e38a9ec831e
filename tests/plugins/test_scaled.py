"""Packed layers whose rows have a factor each: against the matrix that they stand for, alone and in a group of one."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from weightloom.engine.planning.sharding import Sharding
from weightloom.plugins.layers.activations import relu
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.lora import LowRank
from weightloom.plugins.layers.parallel import QuantizedRowLinear, RowLinear, ScaledRowLinear
from weightloom.plugins.layers.parallel_terms import SummedLowRank, low_rank
from weightloom.plugins.layers.scaled import ScaledEmbedding, ScaledLinear, unpacked
from weightloom.plugins.layers.terms import Dial
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.parallel import cut_module
from weightloom.plugins.modules.quantized import Quantization, matrices, quantize

HOW = Quantization(4, 16, "nvfp4", scaled=True)
ROWS, COLUMNS = 6, 32


class Model(nn.Module):
    """One layer of each kind."""

    def __init__(self) -> None:
        super().__init__()
        mx.random.seed(1)
        self.table = nn.Embedding(ROWS, COLUMNS)
        self.down = nn.Linear(COLUMNS, ROWS, bias=True)
        self.experts = Experts(2, COLUMNS, 16, relu)


def scaled() -> Model:
    model = Model()
    quantize(model, dict.fromkeys(("table", "down", "experts.gate_up_proj"), HOW))
    for layer in (model.table, model.down):
        plain = mx.random.normal((ROWS, COLUMNS))
        layer.weight, layer.scales = mx.quantize(plain, 16, 4, "nvfp4")
        layer.global_scale = mx.arange(1, ROWS + 1)[:, None] / 4
    return model


def floats(x: mx.array) -> np.ndarray[Any, Any]:
    return np.array(x.astype(mx.float32))


def test_values() -> None:
    model, x = scaled(), mx.random.normal((2, 3, COLUMNS))
    assert isinstance(model.table, ScaledEmbedding) and isinstance(model.down, ScaledLinear)
    table, down = (floats(unpacked(layer)) for layer in (model.table, model.down))
    np.testing.assert_allclose(floats(model.table(mx.array([[4, 0]]))), table[[[4, 0]]], rtol=1e-2)
    np.testing.assert_allclose(floats(model.table.as_linear(x)), np.array(x) @ table.T, atol=1e-4)
    wanted = np.array(x) @ down.T + np.array(model.down.bias)
    np.testing.assert_allclose(floats(model.down(x)), wanted, atol=1e-4)


def test_codes_times_numbers_do_not_overflow_in_float16() -> None:
    model = scaled()
    model.down.global_scale = mx.full((ROWS, 1), 1e-3)
    x = mx.full((1, COLUMNS), 3e4, mx.float16)
    got = model.down.product(x)
    wanted = np.array(x, np.float32) @ floats(unpacked(model.down)).T
    assert got.dtype == mx.float16
    np.testing.assert_allclose(np.array(got, np.float32), wanted, rtol=1e-2, atol=1)


def test_the_factors_of_a_stack_are_no_stack() -> None:
    assert set(matrices(scaled())) == {"experts.down_proj"}


def test_in_a_group_of_one_they_are_what_they_were() -> None:
    alone, cut, x = scaled(), scaled(), mx.random.normal((2, 3, COLUMNS))
    cut_module(cut, Sharding(0, 1, {r"^table\.": "vocab", r"down\.(weight|scales)": "row"}), mx.distributed.init())
    assert type(cut.down) is ScaledRowLinear
    assert parameters(cut).keys() == parameters(alone).keys()
    cut.update(alone.parameters())
    calls: list[Any] = [lambda m: m.table(mx.array([[4, 0]])), lambda m: m.table.as_linear(x), lambda m: m.down(x)]
    for call in calls:
        np.testing.assert_allclose(floats(call(cut)), floats(call(alone)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [RowLinear, QuantizedRowLinear, ScaledRowLinear])
def test_what_an_adapter_adds_to_a_layer_with_some_inputs_is_summed(kind: type) -> None:
    group = mx.distributed.init()
    sizes: tuple[Any, ...] = (COLUMNS, ROWS, False) if kind is RowLinear else ((COLUMNS, ROWS), False, HOW)
    term = low_rank(kind(*sizes, group))(mx.ones((2, COLUMNS)), mx.ones((ROWS, 2)), 1.0, Dial())
    assert type(term) is SummedLowRank
    assert type(low_rank(nn.Linear(2, 2))(mx.ones((1, 2)), mx.ones((2, 1)), 1.0, Dial())) is LowRank
