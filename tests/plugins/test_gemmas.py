"""What published configs of the Gemmas leave unsaid."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures import gemma, gemma2, gemma4
from weightloom.plugins.configs.rope_kinds import DefaultRope, LinearRope
from weightloom.plugins.layers.activations import gelu_tanh

GEMMA_3_4B = {
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "model_type": "gemma3_text",
    "num_hidden_layers": 34,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024,
}


def test_gelu_of_a_first_gemma_is_the_approximation() -> None:
    assert gemma.read_config({"hidden_act": "gelu"}).act is gelu_tanh


def test_sliding_layers_of_a_gemma_3_turn_by_a_base_of_their_own_though_none_is_said() -> None:
    config = gemma2.read_gemma3(GEMMA_3_4B)
    sliding, full = config.ropes["sliding_attention"], config.ropes["full_attention"]
    assert (sliding.rotation.theta, sliding.kind) == (10000.0, DefaultRope())
    assert (full.rotation.theta, full.kind) == (1000000.0, LinearRope(8.0))
    assert config.windows == ((1024,) * 5 + (None,)) * 5 + (1024,) * 4


def test_a_base_that_is_said_by_layer_type_stands() -> None:
    sections = {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_theta": 7.0}}
    config = gemma2.read_gemma3({**GEMMA_3_4B, "rope_scaling": None, "rope_parameters": sections})
    assert [config.ropes[name].rotation.theta for name in sections] == [1000000.0, 7.0]


def test_every_other_layer_of_a_gemma_2_slides() -> None:
    assert gemma2.read_gemma2({"num_hidden_layers": 4}).windows == (4096, None, 4096, None)


@pytest.mark.parametrize("read", [gemma.read_config, gemma2.read_gemma2, gemma2.read_gemma3])
def test_attention_in_both_directions_is_refused(read: Callable[[Mapping[str, Any]], object]) -> None:
    with pytest.raises(ConfigError, match="use_bidirectional_attention is True"):
        read({"use_bidirectional_attention": True})


GEMMA_4 = {"num_hidden_layers": 6, "global_head_dim": 64, "num_global_key_value_heads": 2, "attention_k_eq_v": True}


def test_heads_of_a_gemma_4_are_the_same_as_published_and_as_transformers_saves_them() -> None:
    saved = {**GEMMA_4, "per_layer_config": {"5": {"head_dim": 64, "num_key_value_heads": 2}}}
    del saved["global_head_dim"], saved["num_global_key_value_heads"]
    published = gemma4.read_gemma4(GEMMA_4).layers
    assert gemma4.read_gemma4(saved).layers == published
    assert [(each.attention.head_dim, each.attention.kv_heads) for each in published] == [(256, 4)] * 5 + [(64, 2)]


def test_the_last_layer_of_a_gemma_4_sees_all() -> None:
    config = gemma4.read_gemma4({"num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2})
    assert [layer.window for layer in config.layers] == [512, None]


def test_what_layers_of_a_gemma_4_have_of_their_own_is_refused_by_layer() -> None:
    with pytest.raises(ConfigError, match="layer 1 has 5"):
        gemma4.read_gemma4({**GEMMA_4, "per_layer_config": {"1": 5}})
    with pytest.raises(ConfigError, match=r"per_layer_config\.1\.num_key_value_heads is 3"):
        gemma4.read_gemma4({**GEMMA_4, "per_layer_config": {"1": {"num_key_value_heads": 3}}})


def test_images_that_a_gemma_4_sees_both_ways_do_not_make_it_an_encoder() -> None:
    gemma4.read_gemma4({"use_bidirectional_attention": "vision"})
    with pytest.raises(ConfigError, match="use_bidirectional_attention is 'all'"):
        gemma4.read_gemma4({"use_bidirectional_attention": "all"})


def test_layers_of_a_gemma_4_unified_hear_nothing_unless_it_says_so() -> None:
    assert gemma4.read_unified({}).fields.hidden_size_per_layer_input == 0
    assert gemma4.read_unified({}).layers[0].window == 1024
