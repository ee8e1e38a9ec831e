"""Which modules are quantized, and how: from the shapes, checked against the config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import TensorSpec
from weightloom.engine.errors import ConfigError
from weightloom.engine.quantizing.quantization import AFFINE_BITS, AFFINE_GROUPS, BLOCK_MODES, Quantization
from weightloom.runtime.preparing.quantized_set import QuantizedSet, quantized_set
from weightloom.runtime.preparing.quantized_settings import Settings, sections_apart, settings_in

Specs = dict[str, TensorSpec]


def module(path: str, columns: int, bits: int, group: int, stack: tuple[int, ...] = ()) -> Specs:
    shape = (*stack, 8)
    return {
        f"{path}.weight": TensorSpec("U32", (*shape, columns * bits // 32)),
        f"{path}.scales": TensorSpec("F16", (*shape, columns // group)),
        f"{path}.biases": TensorSpec("F16", (*shape, columns // group)),
    }


def blocks(path: str, columns: int, mode: str) -> Specs:
    bits, group = BLOCK_MODES[mode]
    made = module(path, columns, bits, group)
    return {f"{path}.weight": made[f"{path}.weight"], f"{path}.scales": TensorSpec("U8", (8, columns // group))}


def found(params: Specs, config: Mapping[str, Any], widths: Mapping[str, int] | None = None) -> QuantizedSet:
    return quantized_set(params, Settings(settings_in(config)), widths or {})


@given(st.sampled_from(AFFINE_BITS), st.sampled_from(AFFINE_GROUPS), st.integers(1, 9))
def test_the_config_settles_what_the_shapes_leave_open(bits: int, group: int, groups: int) -> None:
    params = module("a", group * groups, bits, group)
    seen = found(params, {"quantization": {"group_size": group, "bits": bits}})
    assert seen == QuantizedSet({"a": Quantization(bits, group)})


@given(st.sampled_from(AFFINE_BITS[1:]), st.sampled_from(AFFINE_GROUPS), st.integers(1, 9))
def test_a_group_size_alone_gives_the_bits(bits: int, group: int, groups: int) -> None:
    params = module("a", group * groups, bits, group)
    assert found(params, {"quantization": {"group_size": group}}).modules == {"a": Quantization(bits, group)}


@given(st.sampled_from(AFFINE_BITS), st.sampled_from(AFFINE_GROUPS), st.integers(1, 9))
def test_the_width_of_the_module_settles_it_whatever_the_config_says(bits: int, group: int, groups: int) -> None:
    columns = group * groups
    params = module("a", columns, bits, group)
    for config in ({}, {"quantization": {"group_size": 128, "bits": 3}}):
        seen = found(params, config, {"a": columns})
        assert seen.modules == {"a": Quantization(bits, group)}
        assert bool(seen.notes) == (config != {} and (bits, group) != (3, 128))


@pytest.mark.parametrize("mode", BLOCK_MODES)
def test_block_modes_follow_from_the_shapes_alone(mode: str) -> None:
    bits, group = BLOCK_MODES[mode]
    how = Quantization(bits, group, mode)
    assert found(blocks("a", 64, mode), {}).modules == {"a": how}
    assert found(blocks("a", 64, mode), {"quantization": {"bits": bits, "group_size": group, "mode": mode}}) == (
        QuantizedSet({"a": how})
    )


def test_one_bit_is_taken_where_it_is_said() -> None:
    params = module("a", 128, 1, 128)
    assert found(params, {"quantization": {"group_size": 128, "bits": 1}}).modules == {"a": Quantization(1, 128)}
    # The same shapes are 4 bits in groups of 32 of a narrower matrix: what is not said to have one bit has not.
    assert found(params, {"quantization": {"group_size": 128, "bits": 4}}).modules == {"a": Quantization(4, 32)}


def test_each_module_has_its_own_and_plain_ones_have_none() -> None:
    params = {**module("a", 64, 4, 32), **module("b", 64, 8, 32), "c.weight": TensorSpec("F32", (8, 64))}
    config = {"quantization": {"group_size": 32, "bits": 4, "b": {"group_size": 32, "bits": 8}}}
    assert found(params, config) == QuantizedSet({"a": Quantization(4, 32), "b": Quantization(8, 32)})
    assert found({"c.weight": TensorSpec("F32", (8, 64))}, {}) == QuantizedSet({})


def test_a_module_may_have_a_group_size_of_its_own() -> None:
    params = {**module("a", 64, 4, 32), **module("b", 64, 4, 64)}
    config = {"quantization_config": {"group_size": 32, "bits": 4, "b": {"group_size": 64}}}
    assert found(params, config).modules["b"] == Quantization(4, 64)


def test_stacks_are_packed_under_a_name_of_their_own() -> None:
    params = {
        "experts.up": TensorSpec("U32", (4, 8, 8)),
        "experts.up_scales": TensorSpec("F16", (4, 8, 2)),
        "experts.up_biases": TensorSpec("F16", (4, 8, 2)),
        "other_scales": TensorSpec("F16", (4,)),
    }
    seen = found(params, {"quantization": {"group_size": 32, "bits": 4}})
    assert seen.modules == {"experts.up": Quantization(4, 32)}


@pytest.mark.case("C36")
def test_c36_a_disagreement_with_the_config_is_reported() -> None:
    """C36: 4 bits in groups of 64 says the config; 16 words for one group of 64 are 8."""
    params = {
        "model.embed_tokens.weight": TensorSpec("U32", (64, 16)),
        "model.embed_tokens.scales": TensorSpec("F16", (64, 1)),
        "model.embed_tokens.biases": TensorSpec("F16", (64, 1)),
    }
    seen = found(params, {"quantization": {"group_size": 64, "bits": 4}})
    assert seen.modules == {"model.embed_tokens": Quantization(8, 64)}
    assert seen.notes == (
        "'model.embed_tokens' by the shapes: 8 bits in groups of 64 (affine); "
        "the config says bits 4, group_size 64 of all",
    )


@pytest.mark.case("C36")
def test_c36_what_no_bits_fit_fails_with_the_arithmetic() -> None:
    """C36: 36 words for 16 groups of 32 are 2.25 bits an element."""
    params = {
        "a.weight": TensorSpec("U32", (64, 36)),
        "a.scales": TensorSpec("F16", (64, 16)),
        "a.biases": TensorSpec("F16", (64, 16)),
    }
    with pytest.raises(
        ConfigError, match=r"36 words of 32 bits for 16 groups of 32 are 2\.25 bits an element"
    ) as caught:
        found(params, {"quantization": {"group_size": 32, "bits": 4}})
    assert caught.value.tensor == "a"


@pytest.mark.case("C37")
def test_c37_the_mode_is_of_each_layer() -> None:
    """C37: experts in mxfp4 without biases, one projection in affine with them."""
    q_proj = {"group_size": 64, "bits": 8, "mode": "affine"}
    config = {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4", "q_proj": q_proj}}
    params = {**blocks("experts", 64, "mxfp4"), **module("q_proj", 64, 8, 64)}
    assert found(params, config) == QuantizedSet(
        {"experts": Quantization(4, 32, "mxfp4"), "q_proj": Quantization(8, 64)}
    )
    unsaid = {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}
    seen = found(params, unsaid, {"q_proj": 64})
    assert seen.modules["q_proj"] == Quantization(8, 64)
    assert "'q_proj' by the shapes: 8 bits in groups of 64 (affine)" in seen.notes[0]


@pytest.mark.case("C37")
def test_c37_biases_must_go_with_the_mode() -> None:
    own = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    with pytest.raises(ConfigError, match=r"a has 4 bits in groups of 32 \(affine\) by its shapes.*mode mxfp4"):
        found(module("a", 64, 4, 32), {"quantization": {"group_size": 64, "bits": 4, "a": own}}, {"a": 64})
    lacking = module("a", 64, 4, 32)
    del lacking["a.biases"]
    with pytest.raises(ConfigError, match=r"a has scales, and its scales is F16 .* without biases"):
        found(lacking, {"quantization": {"group_size": 32, "bits": 4}})
    affine = {"quantization": {"group_size": 64, "bits": 8, "a": {"group_size": 32, "bits": 4}}}
    with pytest.raises(ConfigError, match=r"a has 4 bits in groups of 32 \(mxfp4\) by its shapes"):
        found(blocks("a", 64, "mxfp4"), affine)


@pytest.mark.case("C38")
def test_c38_the_file_decides_against_a_false_in_the_config() -> None:
    seen = found(module("a", 64, 4, 32), {"quantization": {"group_size": 32, "bits": 4, "a": False, "b": False}})
    assert seen.modules == {"a": Quantization(4, 32)}
    assert seen.notes == ("'a' quantized in the file, and not so by the config",)


@pytest.mark.case("C39")
def test_c39_an_override_for_what_has_no_scales_is_noted() -> None:
    """C39: an override for a norm is left alone, one that agrees changes nothing, one that does not stops."""
    norm = {"model.norm": {"group_size": 32, "bits": 8}}
    fine = {"a": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}
    base = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    seen = found(blocks("a", 64, "mxfp4"), {"quantization": {**base, **norm, **fine}})
    assert seen.modules == {"a": Quantization(4, 32, "mxfp4")}
    assert seen.notes == (
        "'model.norm' quantized by the config, and in the file there are no scales: left as in the file",
    )
    other = {"a": {"group_size": 64, "bits": 8, "mode": "affine"}}
    with pytest.raises(ConfigError, match=r"a has .*mxfp4.* the config says bits 8, group_size 64, mode affine"):
        found(blocks("a", 64, "mxfp4"), {"quantization": {**base, **other}})


@pytest.mark.case("C35")
def test_c35_an_override_may_be_under_the_name_in_the_file() -> None:
    """C35: the file's name and the module's lead to one setting; two that differ are refused."""
    config = {"quantization": {"group_size": 64, "bits": 4, "model.x": {"group_size": 64, "bits": 8}}}
    settings = Settings(settings_in(config), {"net.x": ("model.x",)})
    assert quantized_set(module("net.x", 64, 8, 64), settings, {}) == QuantizedSet({"net.x": Quantization(8, 64)})
    both = Settings({**settings.section, "net.x": {"group_size": 64, "bits": 4}}, settings.in_files)
    with pytest.raises(ConfigError, match=r"net.x has .* and model.x has .* and both are of net.x"):
        quantized_set(module("net.x", 64, 8, 64), both, {})


@pytest.mark.parametrize(
    ("change", "config", "message"),
    [
        ({}, {}, "group_size is None"),
        ({}, {"quantization": {"group_size": "32"}}, "group_size is '32'"),
        ({}, {"quantization": {"group_size": True}}, "group_size is True"),
        ({}, {"quantization": {"group_size": 0}}, "group_size is 0"),
        ({}, {"quantization": {"group_size": 32, "mode": "nf4"}}, "mode is 'nf4'"),
        ({}, {"quantization": {"group_size": 32, "a": {"bits": "4"}}}, "quantization.a.bits is '4'"),
        ({}, {"quantization": [32]}, "group_size is None"),
        ({}, {"quantization": {"group_size": 32, "a": "yes"}}, "quantization.a is 'yes'"),
        ({}, {"quantization": {"group_size": 32, "a": None}}, "quantization.a is None"),
        ({}, {"quantization": {"group_size": 48}}, "2.66667 bits"),
        ({"a.weight": TensorSpec("F32", (8, 64))}, {"quantization": {"group_size": 32}}, "F32"),
        ({"a.weight": TensorSpec("U32", ())}, {"quantization": {"group_size": 32}}, "a has scales"),
        ({"a.scales": TensorSpec("F16", (4, 2))}, {"quantization": {"group_size": 32}}, r"its scales is F16 \[4, 2\]"),
        ({"a.scales": TensorSpec("F16", (8, 0))}, {"quantization": {"group_size": 32}}, r"its scales is F16 \[8, 0\]"),
        ({"a.biases": TensorSpec("F16", (8, 1))}, {"quantization": {"group_size": 32}}, r"its biases is F16 \[8, 1\]"),
        ({"a.biases": TensorSpec("U8", (8, 2))}, {"quantization": {"group_size": 32}}, r"its biases is U8"),
        ({"a.scales": TensorSpec("U8", (8, 2))}, {"quantization": {"group_size": 32}}, r"its scales is U8 .* biases"),
        ({}, {"quantization": {"group_size": 32, "a": {"group_size": 32, "bits": 8}}}, "4 bits .* config says bits 8"),
    ],
)
def test_what_does_not_add_up_is_named(change: dict[str, TensorSpec], config: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        found({**module("a", 64, 4, 32), **change}, config)


def test_scales_without_a_weight_are_named() -> None:
    params = module("a", 64, 4, 32)
    del params["a.weight"]
    with pytest.raises(ConfigError, match=r"a has scales and the weight \(none\)"):
        found(params, {"quantization": {"group_size": 32}})


def test_two_sections_that_differ_are_told() -> None:
    one, other = {"group_size": 64, "bits": 4}, {"group_size": 64, "bits": 8}
    said = "quantization and quantization_config differ in 'bits': quantization counts"
    assert list(sections_apart({"quantization": one, "quantization_config": other})) == [said]
    assert not list(sections_apart({"quantization": one, "quantization_config": one}))
    assert not list(sections_apart({"quantization": one, "quantization_config": {**other, "quant_method": "awq"}}))
