"""Checks and derived numbers that readers of configs share: what they give, and which field they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from weightloom.engine.errors import ConfigError
from weightloom.plugins.configs import FULL, SLIDING, TextFields, layer_types_of, read, window_of
from weightloom.plugins.configs.checks import (
    expert_count_field,
    head_dim_of,
    kv_heads_of,
    refuse_lonely_borrowers,
    refuse_non_positive,
    refuse_non_positive_where_given,
)
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.linear_fields import LINEAR, LinearFields
from weightloom.plugins.configs.mamba2_fields import Mamba2Fields

SIZES: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 24,
    "intermediate_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
}


def named(call: Callable[..., object], *given: Any, **more: Any) -> str | None:
    with pytest.raises(ConfigError) as caught:
        call(*given, **more)
    return caught.value.field


def test_sizes() -> None:
    refuse_non_positive({"a": 1, "b": 0.5})
    refuse_non_positive_where_given({"a": None, "b": 2})
    assert named(refuse_non_positive, {"a": 1, "b": 0}) == "b"
    assert named(refuse_non_positive, {"a": 2**31}) == "a"
    assert named(refuse_non_positive, {"num_hidden_layers": 2**17}) == "num_hidden_layers"
    assert named(refuse_non_positive_where_given, {"a": None, "b": -1}) == "b"


def test_heads() -> None:
    assert (head_dim_of(None, 24, 6), head_dim_of(5, 24, 6)) == (4, 5)
    assert named(head_dim_of, None, 24, 5) == "hidden_size"
    assert named(head_dim_of, 2**17, 24, 6, "wide") == "wide"
    assert (kv_heads_of(None, 6), kv_heads_of(2, 6)) == (6, 2)
    assert named(kv_heads_of, 4, 6) == named(kv_heads_of, 0, 6) == "num_key_value_heads"


def test_layer_types() -> None:
    assert layer_types_of(None, 3, SLIDING) == (SLIDING,) * 3
    assert layer_types_of(None, 5, FULL, 2) == (SLIDING, FULL, SLIDING, FULL, SLIDING)
    assert layer_types_of([FULL, SLIDING], 2, FULL) == (FULL, SLIDING)
    assert layer_types_of([SLIDING, FULL], 2, FULL, 2) == (SLIDING, FULL)
    assert named(layer_types_of, [FULL], 2, FULL) == "layer_types"
    assert named(layer_types_of, [FULL, "half"], 2, FULL) == "layer_types"
    assert named(layer_types_of, [FULL, SLIDING], 2, FULL, 2) == "sliding_window_pattern"
    assert named(layer_types_of, None, 2, FULL, 0) == "sliding_window_pattern"


def test_windows() -> None:
    assert (window_of(FULL, 7), window_of(FULL, None), window_of(SLIDING, 7)) == (None, None, 7)
    assert named(window_of, SLIDING, None) == named(window_of, SLIDING, 0) == "sliding_window"


@pytest.mark.parametrize(("borrowers", "fine"), [(0, True), (1, True), (2, True), (3, False), (4, False), (-1, False)])
def test_borrowers_have_a_layer_of_their_type_before_them(borrowers: int, fine: bool) -> None:
    types = (SLIDING, FULL, SLIDING, FULL)
    if fine:
        refuse_lonely_borrowers(types, borrowers)
    else:
        assert named(refuse_lonely_borrowers, types, borrowers) == "num_kv_shared_layers"


def test_the_number_of_experts_has_two_names() -> None:
    assert expert_count_field({}) == expert_count_field({"num_experts": 2}) == "num_experts"
    assert expert_count_field({"num_local_experts": 2}) == "num_local_experts"
    assert named(expert_count_field, {"num_experts": 2, "num_local_experts": 3}) == "num_experts"
    fields = read_experts(ExpertFields, {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2})
    assert (fields.num_experts, fields.num_experts_per_tok) == (4, 2)
    few = {**SIZES, "num_local_experts": 1, "num_experts_per_tok": 2}
    assert named(read_experts, ExpertFields, few) == "num_experts_per_tok"
    assert named(read_experts, ExpertFields, {**few, "num_local_experts": 0}) == "num_local_experts"


def test_fields_of_text_models() -> None:
    fields = read(TextFields, {**SIZES, "num_key_value_heads": 3})
    fields.check()
    assert (fields.head_size, fields.kv_heads) == (4, 3)
    assert named(replace(fields, rms_norm_eps=0.0).check) == "rms_norm_eps"
    assert named(replace(fields, sliding_window=0).check, "sliding_window") == "sliding_window"


def test_fields_of_linear_attention() -> None:
    fields = read(LinearFields, {**SIZES, "full_attention_interval": 2})
    fields.check_linear()
    assert fields.types() == (LINEAR, FULL, LINEAR, FULL)
    assert replace(fields, layer_types=(FULL, LINEAR, LINEAR, FULL)).types() == (FULL, LINEAR, LINEAR, FULL)
    assert named(replace(fields, full_attention_interval=0).types) == "full_attention_interval"
    assert named(replace(fields, linear_num_value_heads=20).check_linear) == "linear_num_value_heads"
    assert named(replace(fields, linear_conv_kernel_dim=0).check_linear) == "linear_conv_kernel_dim"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"mamba_n_heads": 5}, "mamba_n_heads"),
        ({"mamba_n_groups": 3}, "mamba_n_groups"),
        ({"mamba_d_head": 5}, "mamba_d_head"),
        ({"mamba_d_state": 0}, "mamba_d_state"),
    ],
)
def test_fields_of_mamba_2(change: dict[str, Any], field: str) -> None:
    fields = read(Mamba2Fields, {**SIZES, "mamba_n_heads": 8, "mamba_d_head": 6})
    fields.check_mixers()
    assert fields.channels == 48
    assert named(replace(fields, **change).check_mixers) == field
