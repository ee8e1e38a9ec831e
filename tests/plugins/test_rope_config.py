"""Rotary settings of both config forms: cases C24 and C25, and what is refused."""

from typing import Any

import pytest

from weightloom.engine.errors import ConfigError
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.rope_kinds import DefaultRope, DynamicRope, LinearRope, Llama3Rope
from weightloom.plugins.configs.rotation import Rotation
from weightloom.plugins.configs.yarn_rope import YarnRope

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
ORIGINAL = "original_max_position_embeddings"
LONG = {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}


def rope(content: dict[str, Any], head_dim: int = 8) -> RopeConfig:
    return read_rope(content, head_dim, 64)["full_attention"]


def refused(content: dict[str, Any], head_dim: int = 8) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_rope(content, head_dim, 64)
    return caught.value


@pytest.mark.case("C24")
def test_c24_the_theta_of_rope_parameters_is_read() -> None:
    read = rope({"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}})
    assert read == RopeConfig(Rotation(500000.0, 8, 64), DefaultRope())


@pytest.mark.case("C24")
def test_c24_layer_types_keep_their_own_theta() -> None:
    sections = {"full_attention": {"rope_theta": 1000000.0}, "sliding_attention": {"rope_theta": 10000.0}}
    read = read_rope({"rope_parameters": sections}, 8, 64, layer_types=("sliding_attention", "full_attention"))
    assert {name: each.rotation.theta for name, each in read.items()} == {
        "full_attention": 1000000.0,
        "sliding_attention": 10000.0,
    }


@pytest.mark.case("C24")
def test_c24_a_layer_type_without_a_section_is_named() -> None:
    with pytest.raises(ConfigError, match="no section for 'sliding_attention'") as caught:
        read_rope({"rope_parameters": {"full_attention": {}}}, 8, 64, layer_types=("sliding_attention",))
    assert caught.value.field == "rope_parameters.sliding_attention"


@pytest.mark.case("C25")
@pytest.mark.parametrize(
    ("scaling", "kind"),
    [
        (None, DefaultRope()),
        ({}, DefaultRope()),
        ({"type": "linear", "factor": 2.0}, LinearRope(2.0)),
        ({"rope_type": "llama3", **LLAMA3}, Llama3Rope(8.0, 1.0, 4.0, 8192)),
        ({"type": "dynamic", "factor": 4}, DynamicRope(4.0)),
        ({"rope_type": None, "type": None}, DefaultRope()),
        ({"rope_type": "yarn", "factor": 4, "mscale": None}, YarnRope(4.0)),
        (
            {"type": "yarn", "factor": 4.0, "attention_factor": 1.5, "truncate": False},
            YarnRope(4.0, None, 1.5, truncate=False),
        ),
    ],
)
def test_c25_rope_scaling(scaling: object, kind: object) -> None:
    assert rope({"rope_scaling": scaling, "rope_theta": 500.0}) == RopeConfig(Rotation(500.0, 8, 64), kind)  # type: ignore[arg-type]


@pytest.mark.case("C25")
def test_c25_an_unknown_type_is_named_with_the_known_ones() -> None:
    error = refused({"rope_scaling": {"rope_type": "foo", "factor": 2.0}})
    assert "'foo'" in error.seen
    assert error.expected == "one of default, linear, dynamic, llama3, yarn, longrope, proportional"
    assert error.field == "rope_scaling.rope_type"


def test_a_near_miss_gets_a_guess() -> None:
    assert refused({"rope_scaling": {"type": "llama"}}).hint == "did you mean 'llama3'?"


def test_a_type_that_is_no_text_is_refused() -> None:
    assert refused({"rope_parameters": {"rope_type": ["yarn"]}}).field == "rope_parameters.rope_type"


def test_both_forms_give_one_value() -> None:
    old = {"rope_theta": 5000.0, "rope_scaling": {"type": "llama3", **LLAMA3}, "partial_rotary_factor": 0.5}
    new = {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5000.0, "partial_rotary_factor": 0.5, **LLAMA3}}
    assert rope(old) == rope(new)
    assert rope(old).rotation.dims == 4


def test_both_sections_may_agree_and_not_differ() -> None:
    both = {
        "rope_scaling": {"type": "linear", "factor": 2.0},
        "rope_parameters": {"rope_type": "linear", "rope_theta": 9.0},
    }
    assert rope(both) == RopeConfig(Rotation(9.0, 8, 64), LinearRope(2.0))
    both["rope_parameters"]["factor"] = 3.0
    assert refused(both).field == "rope_scaling.factor"


@pytest.mark.parametrize(
    ("content", "field", "said"),
    [
        (
            {"rope_theta": 5.0, "rope_parameters": {"rope_theta": 7.0}},
            "rope_parameters.rope_theta",
            "rope_theta is 5.0",
        ),
        (
            {"rope_theta": 5.0, "rope_parameters": {"full_attention": {"rope_theta": 7.0}}},
            "rope_parameters.full_attention.rope_theta",
            "rope_theta is 5.0",
        ),
        (
            {"partial_rotary_factor": 0.5, "rope_scaling": {"partial_rotary_factor": 1.0}},
            "rope_scaling.partial_rotary_factor",
            "partial_rotary_factor is 0.5",
        ),
        (
            {"original_max_position_embeddings": 16, "rope_scaling": {"original_max_position_embeddings": 32}},
            "rope_scaling.original_max_position_embeddings",
            "original_max_position_embeddings is 16",
        ),
        ({"rope_scaling": {"type": "linear", "rope_type": "yarn"}}, "rope_scaling.rope_type", "type is 'linear'"),
        ({"rope_scaling": {"type": "foo"}}, "rope_scaling.type", "one of default, linear"),
        ({"rope_scaling": {"rope_type": ""}}, "rope_scaling.rope_type", "one of default, linear"),
        ({"rope_parameters": {"factor": 2.0, "full_attention": {}}}, "rope_parameters.factor", "beside sections"),
        (
            {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"full_attention": {"factor": 3.0}}},
            "rope_scaling.factor",
            "rope_parameters.full_attention.factor is 3.0",
        ),
    ],
)
def test_what_is_said_twice_and_differs_is_named_with_both_places(
    content: dict[str, Any], field: str, said: str
) -> None:
    error = refused(content)
    assert error.field == field and said in str(error)


def test_what_is_said_twice_alike_is_read_once() -> None:
    flat = {"rope_theta": 7, "rope_parameters": {"rope_theta": 7.0}, "rope_scaling": {"type": None, "rope_type": None}}
    assert rope(flat) == rope({"rope_theta": 7.0})
    both = {"rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 2}}
    assert rope(both).kind == LinearRope(2.0)


SCALED = {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}


def test_both_forms_of_bases_by_layer_type_give_one_value() -> None:
    """A base for sliding layers comes unscaled in the older form; the newer one says it all by type."""
    new = {
        "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    old = {"rope_theta": 1e6, "rope_local_base_freq": 1e4, **SCALED}
    types = ("full_attention", "sliding_attention")
    read = read_rope({"rope_parameters": new}, 8, 64, layer_types=types)
    assert read == read_rope(old, 8, 64, layer_types=types)
    assert read == read_rope({**old, "rope_parameters": new}, 8, 64, layer_types=types)
    assert read["sliding_attention"] == RopeConfig(Rotation(1e4, 8, 64), DefaultRope())
    with pytest.raises(ConfigError, match="rope_local_base_freq is 5") as caught:
        read_rope({"rope_local_base_freq": 5.0, "rope_parameters": new}, 8, 64, layer_types=types)
    assert caught.value.field == "rope_parameters.sliding_attention.rope_theta"


def test_without_a_base_of_their_own_sliding_layers_turn_as_the_others() -> None:
    read = read_rope({"rope_theta": 1e6, **SCALED}, 8, 64, layer_types=("full_attention", "sliding_attention"))
    assert read["full_attention"] == read["sliding_attention"] == RopeConfig(Rotation(1e6, 8, 64), LinearRope(2.0))


def test_the_order_of_fields_does_not_matter() -> None:
    content = {"rope_theta": 7.0, "rope_parameters": {"rope_type": "linear", "type": "linear", "factor": 2.0}}
    turned = {name: content[name] for name in reversed(content)}
    turned["rope_parameters"] = dict(reversed(content["rope_parameters"].items()))  # type: ignore[attr-defined]
    assert rope(content) == rope(turned)


def test_the_default_theta_is_the_familys() -> None:
    assert read_rope({}, 8, 64, 1e6)["full_attention"].rotation.theta == 1e6


def test_the_original_length_at_the_top_of_the_config_counts() -> None:
    read = rope({"rope_scaling": {"type": "yarn", "factor": 2.0}, "original_max_position_embeddings": 16})
    assert read.kind == YarnRope(2.0, 16)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"rope_scaling": []}, "rope_scaling"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor"),
        ({"rope_scaling": {"type": "linear", "factor": "2"}}, "rope_scaling.factor"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "rope_scaling.factor"),
        ({"rope_scaling": {"type": "dynamic", "factor": -1.0}}, "rope_scaling.factor"),
        ({"rope_scaling": {"type": "dynamic", "factor": float("nan")}}, "rope_scaling.factor"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0, "beta_fast": 0}}, "rope_scaling.beta_fast"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0, "attention_factor": -1}}, "rope_scaling.attention_factor"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": 1}}, "rope_scaling.truncate"),
        ({"rope_scaling": {"type": "llama3", **LLAMA3, "high_freq_factor": 1.0}}, "rope_scaling.high_freq_factor"),
        ({"rope_scaling": {**LONG, "short_factor": [1.0] * 3}}, "rope_scaling.short_factor"),
        ({"rope_scaling": {**LONG, "long_factor": [1.0, 0, 1.0, 1.0]}}, "rope_scaling.long_factor"),
        ({"rope_scaling": {**LONG, "original_max_position_embeddings": 1}}, f"rope_scaling.{ORIGINAL}"),
        ({"rope_parameters": {"rope_theta": None}}, "rope_parameters.rope_theta"),
        ({"rope_theta": True}, "rope_theta"),
        ({"rope_theta": 1.0}, "rope_theta"),
        ({"rope_theta": float("inf")}, "rope_theta"),
        ({"rope_theta": 10**400}, "rope_theta"),
        ({"partial_rotary_factor": 0}, "partial_rotary_factor"),
        ({"partial_rotary_factor": 1.5}, "partial_rotary_factor"),
        ({"partial_rotary_factor": 0.4}, "partial_rotary_factor"),
    ],
)
def test_what_cannot_be_is_refused_by_name(content: dict[str, Any], field: str) -> None:
    assert refused(content).field == field


def test_an_odd_head_is_refused() -> None:
    assert refused({}, head_dim=7).field == "head_dim"


def test_a_share_that_is_no_even_number_of_dims_is_shown_as_it_is_written() -> None:
    error = refused({"rope_parameters": {"partial_rotary_factor": 0.5}}, head_dim=6)
    assert str(error).startswith("rope_parameters.partial_rotary_factor is 0.5\n")
    assert error.expected is not None and "not 3" in error.expected


def test_a_family_can_turn_a_part_of_the_dims_by_default() -> None:
    assert read_rope({}, 16, 64, default_part=0.5)["full_attention"].rotation.dims == 8
    assert read_rope({"partial_rotary_factor": 0.25}, 16, 64, default_part=0.5)["full_attention"].rotation.dims == 4
