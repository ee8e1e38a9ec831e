"""The text architectures: what the kit does not try. Windows matter, building computes nothing, kinds of cuts."""

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

SLIDING = {
    **CONFIGS["llama"],
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {"full_attention": {"rope_theta": 5000.0}, "sliding_attention": {"rope_theta": 100.0}},
}


def built(content: Mapping[str, Any]) -> Any:
    architecture = PluginManager().architecture(content["model_type"])
    mx.random.seed(3)
    module = architecture.build(architecture.read_config(content))
    module.update(tree_map(lambda array: mx.random.normal(array.shape) / 3, module.parameters()))
    return module


def tokens(length: int) -> mx.array:
    return mx.array(np.random.default_rng(1).integers(0, SIZES["vocab_size"], (2, length)).astype(np.int32))


def test_a_window_matters() -> None:
    """No reference has a Llama whose layers are of two kinds."""
    narrow, ids = built(SLIDING), tokens(30)
    wide = built({**SLIDING, "sliding_window": 40})
    difference = np.abs(np.array(narrow(ids)) - np.array(wide(ids))).max(axis=(0, 2))
    assert difference[: SLIDING["sliding_window"]].max() < 1e-5
    assert difference[-1] > 1e-2


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
