"""The text architectures: names, shapes, dtypes, and the same logits whole and through the cache."""

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx.utils import tree_map

from tests.plugins.tiny import CONFIGS, SIZES
from weightloom.engine import Sharding
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.modules.binding import param_specs

MORE: dict[str, dict[str, Any]] = {
    "llama, tied": {**CONFIGS["llama"], "tie_word_embeddings": True, "head_dim": 16},
    "llama, some layers slide": {
        **CONFIGS["llama"],
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": {"rope_theta": 5000.0}, "sliding_attention": {"rope_theta": 100.0}},
    },
    "llama, part of the head turns": {**CONFIGS["llama"], "partial_rotary_factor": 0.5},
    "mistral, a window of one": {**CONFIGS["mistral"], "sliding_window": 1},
    "mixtral, sliding": {**CONFIGS["mixtral"], "sliding_window": 6},
    "qwen3_moe, sliding": {**CONFIGS["qwen3_moe"], "use_sliding_window": True, "sliding_window": 8},
}
ALL = {**CONFIGS, **MORE}


def built(content: Mapping[str, Any]) -> Any:
    architecture = PluginManager().architecture(content["model_type"])
    mx.random.seed(3)
    module = architecture.build(architecture.read_config(content))
    module.update(tree_map(lambda array: mx.random.normal(array.shape) / 3, module.parameters()))
    return module


def tokens(length: int) -> mx.array:
    return mx.array(np.random.default_rng(1).integers(0, SIZES["vocab_size"], (2, length)).astype(np.int32))


@pytest.mark.parametrize("name", ["mistral", "llama, some layers slide"])
def test_a_window_matters(name: str) -> None:
    content = dict(ALL[name])
    narrow, ids = built(content), tokens(30)
    wide = built({**content, "sliding_window": 40})
    difference = np.abs(np.array(narrow(ids)) - np.array(wide(ids))).max(axis=(0, 2))
    assert difference[: content["sliding_window"]].max() < 1e-5
    assert difference[-1] > 1e-2


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_have_the_canonical_names(name: str) -> None:
    specs = {path: spec.shape for path, spec in param_specs(built(CONFIGS[name])).items()}
    head = 16 if name == "qwen3_moe" else 8
    attention = "model.layers.2.self_attn."
    assert specs[attention + "q_proj.weight"] == (4 * head, 32)
    assert specs[attention + "k_proj.weight"] == specs[attention + "v_proj.weight"] == (2 * head, 32)
    assert specs[attention + "o_proj.weight"] == (32, 4 * head)
    assert specs["model.layers.0.input_layernorm.weight"] == specs["model.norm.weight"] == (32,)
    assert specs["lm_head.weight"] == specs["model.embed_tokens.weight"] == (32, 32)


def test_experts_are_stacked() -> None:
    specs = {path: spec.shape for path, spec in param_specs(built(CONFIGS["qwen3_moe"])).items()}
    assert specs["model.layers.0.mlp.experts.gate_up_proj"] == (4, 16, 32)
    assert specs["model.layers.0.mlp.experts.down_proj"] == (4, 32, 8)
    assert specs["model.layers.0.mlp.gate.weight"] == (4, 32)
    assert specs["model.layers.1.mlp.gate_proj.weight"] == (24, 32)
    assert specs["model.layers.0.self_attn.q_norm.weight"] == (16,)
    assert not any("q_norm" in path for path in param_specs(built(CONFIGS["mixtral"])))


def test_a_tied_model_has_no_head() -> None:
    module = built(MORE["llama, tied"])
    assert "lm_head.weight" not in param_specs(module)
    hidden = module.model(tokens(3))
    np.testing.assert_allclose(
        np.array(module.head(hidden)), np.array(hidden @ module.model.embed_tokens.weight.T), atol=1e-5
    )


def test_biases_are_there_when_the_config_says_so() -> None:
    specs = param_specs(built({**CONFIGS["llama"], "attention_bias": True, "mlp_bias": True}))
    names = ("self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj")
    assert all(f"model.layers.0.{name}.bias" in specs for name in names)
    assert not any(name.endswith(".bias") for name in param_specs(built(CONFIGS["llama"])))


def test_building_computes_nothing() -> None:
    big = {"hidden_size": 2**16, "intermediate_size": 2**18, "vocab_size": 2**20, "num_attention_heads": 64}
    architecture = PluginManager().architecture("mixtral")
    before = mx.get_active_memory()
    module = architecture.build(architecture.read_config({**CONFIGS["mixtral"], **big}))
    assert param_specs(module)["model.layers.0.mlp.experts.down_proj"].shape == (4, 2**16, 2**18)
    assert mx.get_active_memory() - before < 2**20


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_cut_and_how(name: str) -> None:
    content = {**CONFIGS[name], "attention_bias": True} if "mixtral" not in name else CONFIGS[name]
    architecture = PluginManager().architecture(name)
    sharding = Sharding(0, 2, architecture.sharding)
    kinds = {path: sharding.kind_of(path) for path in param_specs(built(content))}
    assert kinds["model.layers.0.self_attn.q_proj.weight"] == "column"
    assert kinds["model.layers.0.self_attn.o_proj.weight"] == "row"
    assert kinds["model.norm.weight"] == "replicate"
    assert kinds.get("model.layers.0.self_attn.o_proj.bias", "replicate") == "replicate"
    assert kinds.get("model.layers.0.mlp.gate.weight", "replicate") == "replicate"
