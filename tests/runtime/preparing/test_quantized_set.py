"""Which modules are quantized, and to how many bits: from the shapes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import TensorSpec
from weightloom.engine.errors import ConfigError
from weightloom.plugins.quantized import Quantization
from weightloom.runtime.preparing.quantized_set import quantized_modules


def module(path: str, columns: int, bits: int, group: int, stack: tuple[int, ...] = ()) -> dict[str, TensorSpec]:
    shape = (*stack, 8)
    return {
        f"{path}.weight": TensorSpec("U32", (*shape, columns * bits // 32)),
        f"{path}.scales": TensorSpec("F16", (*shape, columns // group)),
        f"{path}.biases": TensorSpec("F16", (*shape, columns // group)),
    }


@given(st.sampled_from([2, 3, 4, 5, 6, 8]), st.sampled_from([32, 64, 128]), st.integers(1, 9))
def test_bits_follow_from_the_shapes(bits: int, group: int, groups: int) -> None:
    params = module("a", group * groups, bits, group)
    assert quantized_modules(params, {"quantization": {"group_size": group}}) == {"a": Quantization(bits, group)}


def test_each_module_has_its_own_and_plain_ones_have_none() -> None:
    params = {**module("a", 64, 4, 32), **module("b", 64, 8, 32), "c.weight": TensorSpec("F32", (8, 64))}
    config = {"quantization": {"group_size": 32, "bits": 4, "b": {"group_size": 32, "bits": 8}}}
    assert quantized_modules(params, config) == {"a": Quantization(4, 32), "b": Quantization(8, 32)}
    assert quantized_modules({"c.weight": TensorSpec("F32", (8, 64))}, {}) == {}


def test_a_module_may_have_a_group_size_of_its_own() -> None:
    params = {**module("a", 64, 4, 32), **module("b", 64, 4, 64)}
    config = {"quantization_config": {"group_size": 32, "b": {"group_size": 64}}}
    assert quantized_modules(params, config)["b"] == Quantization(4, 64)


def test_stacks_are_packed_under_a_name_of_their_own() -> None:
    params = {
        "experts.up": TensorSpec("U32", (4, 8, 8)),
        "experts.up_scales": TensorSpec("F16", (4, 8, 2)),
        "experts.up_biases": TensorSpec("F16", (4, 8, 2)),
        "other_scales": TensorSpec("F16", (4,)),
    }
    assert quantized_modules(params, {"quantization": {"group_size": 32}}) == {"experts.up": Quantization(4, 32)}


@pytest.mark.parametrize(
    ("change", "config", "message"),
    [
        ({}, {}, "group_size is None"),
        ({}, {"quantization": {"group_size": "32"}}, "group_size is '32'"),
        ({}, {"quantization": {"group_size": True}}, "group_size is True"),
        ({}, {"quantization": {"group_size": 0}}, "group_size is 0"),
        ({}, {"quantization": [32]}, "group_size is None"),
        ({}, {"quantization": {"group_size": 48}}, "2.66667 bits"),
        ({"a.weight": TensorSpec("F32", (8, 64))}, {"quantization": {"group_size": 32}}, "F32"),
        ({"a.weight": TensorSpec("U32", ())}, {"quantization": {"group_size": 32}}, "a has scales"),
        ({}, {"quantization": {"group_size": 32, "a": {"group_size": 32, "bits": 8}}}, "4 bits and the config says 8"),
    ],
)
def test_what_does_not_add_up_is_named(change: dict[str, TensorSpec], config: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        quantized_modules({**module("a", 64, 4, 32), **change}, config)


def test_scales_without_a_weight_are_named() -> None:
    params = module("a", 64, 4, 32)
    del params["a.weight"]
    with pytest.raises(ConfigError, match=r"a has scales and the weight \(none\)"):
        quantized_modules(params, {"quantization": {"group_size": 32}})
