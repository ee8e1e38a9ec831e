"""mlx-lm's names and shapes of state-space, hybrid and multimodal families, against the parameters that they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weightloom.engine import Checkpoint, RuleSet, TensorSpec, build_plan, save_plan
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.configs.config import Config

H, W, E, K = 8, 6, 3, 4  # hidden size, width of a block or of an expert, experts, kernel
Shapes = Mapping[str, tuple[int, ...]]

AT, TOWER, INNER = "model.layers.0", "language_model.model.layers.0", "model.language_model.layers.0"
SWITCH = {"gate_proj.weight": (E, W, H), "up_proj.weight": (E, W, H), "down_proj.weight": (E, H, W)}
FUSED = {"gate_up_proj": (E, 2 * W, H), "down_proj": (E, H, W)}


def at(place: str, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The same below a place."""
    return {f"{place}.{name}": shape for name, shape in shapes.items()}


def conv(name: str, last: bool) -> dict[str, tuple[int, ...]]:
    return {name: (H, K, 1) if last else (H, 1, K)}


def tower(name: str) -> dict[str, tuple[int, ...]]:
    """What is written, and what it is: the text model's layer, its norm, the head."""
    below = f"{name}.layers.0.mlp.down_proj.weight", f"{name}.norm.weight"
    return {below[0]: (H, W), below[1]: (H,)}


TEXT = tower("language_model.model"), tower("model.language_model")
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4}
CASES: Mapping[str, tuple[Mapping[str, Any], Shapes, Shapes]] = {
    "mamba": (
        {},
        conv("backbone.layers.0.mixer.conv1d.weight", True),
        conv("backbone.layers.0.mixer.conv1d.weight", False),
    ),
    "recurrent_gemma": (
        {},
        conv(f"{AT}.temporal_block.conv_1d.weight", True),
        conv(f"{AT}.temporal_block.conv_1d.weight", False),
    ),
    "rwkv7": (
        {"head_dim": 4},
        at(f"{AT}.attn", {"k_k": (2, 4), "g_norm.bias": (2, 4), "r_k": (2, 4)}),
        at(f"{AT}.attn", {"k_k": (H,), "g_norm.bias": (H,), "r_k": (2, 4)}),
    ),
    "jamba": (
        {},
        conv(f"{AT}.mamba.conv1d.weight", True) | at(f"{AT}.feed_forward.switch_mlp", SWITCH),
        conv(f"{AT}.mamba.conv1d.weight", False) | at(f"{AT}.feed_forward.experts", FUSED),
    ),
    "nemotron_h": (
        {},
        conv("backbone.layers.0.mixer.conv1d.weight", True)
        | at("backbone.layers.1.mixer.switch_mlp", {"fc1.weight": (E, W, H), "fc2.weight": (E, H, W)}),
        conv("model.layers.0.mixer.conv1d.weight", False)
        | at("model.layers.1.mixer.experts", {"up_proj": (E, W, H), "down_proj": (E, H, W)}),
    ),
    "granitemoehybrid": (
        {"num_local_experts": 0},
        conv(f"{AT}.mamba.conv1d.weight", True)
        | at(f"{AT}.mlp", {"gate_proj.weight": (W, H), "up_proj.weight": (W, H), "down_proj.weight": (H, W)}),
        conv(f"{AT}.mamba.conv1d.weight", False)
        | at(f"{AT}.shared_mlp", {"input_linear.weight": (2 * W, H), "output_linear.weight": (H, W)}),
    ),
    "qwen3_next": (
        {},
        conv(f"{AT}.linear_attn.conv1d.weight", True)
        | at(f"{AT}.mlp.switch_mlp", SWITCH)
        | {"model.norm.weight": (H,), f"{AT}.linear_attn.norm.weight": (H,), f"{AT}.self_attn.q_norm.weight": (H,)},
        conv(f"{AT}.linear_attn.conv1d.weight", False)
        | at(f"{AT}.mlp.experts", FUSED)
        | {"model.norm.weight": (H,), f"{AT}.linear_attn.norm.weight": (H,), f"{AT}.self_attn.q_norm.weight": (H,)},
    ),
    "qwen3_5_moe": (
        {"text_config": {"model_type": "qwen3_5_moe_text"}},
        TEXT[0] | conv(f"{TOWER}.linear_attn.conv1d.weight", True) | at(f"{TOWER}.mlp.switch_mlp", SWITCH),
        TEXT[1] | conv(f"{INNER}.linear_attn.conv1d.weight", False) | at(f"{INNER}.mlp.experts", FUSED),
    ),
    "olmo_hybrid": (
        {"linear_num_key_heads": 1, "linear_key_head_dim": 2, "linear_num_value_heads": 1, "linear_value_head_dim": 4},
        {f"{AT}.linear_attn.{part}_conv1d.weight": (rows, K, 1) for part, rows in (("q", 2), ("k", 2), ("v", 4))},
        conv(f"{AT}.linear_attn.conv1d.weight", False),
    ),
    "falcon_h1": (
        {"mlp_multipliers": [0.5, 2.0], "embedding_multiplier": 3.0},
        {f"{AT}.feed_forward.gate_proj.weight": (W, H), "model.embed_tokens.weight": (E, H)}
        | conv(f"{AT}.mamba.conv1d.weight", True),
        {f"{AT}.feed_forward.gate_proj.weight": (W, H), "model.embed_tokens.weight": (E, H)}
        | conv(f"{AT}.mamba.conv1d.weight", False),
    ),
    "lfm2": ({}, conv(f"{AT}.conv.conv.weight", True), conv(f"{AT}.conv.conv.weight", False)),
    "gemma4": (
        {"text_config": {"model_type": "gemma4_text"}},
        TEXT[0] | at(f"{TOWER}.experts.switch_glu", SWITCH),
        TEXT[1] | at(f"{INNER}.experts", FUSED),
    ),
    "muse_glimmer": ({}, tower("model"), TEXT[1]),
    "muse_spark": (
        HEADS,
        {f"{INNER}.self_attn.qkvg_proj.weight": (24, H), f"{INNER}.mlp.experts.down_proj.weight": (E, H, W)},
        at(f"{INNER}.self_attn", {"q_proj.weight": (8, H), "k_proj.weight": (4, H), "v_proj.weight": (4, H)})
        | {f"{INNER}.self_attn.gate_proj.weight": (8, H), f"{INNER}.mlp.experts.down_proj": (E, H, W)},
    ),
    "mistral3": (
        {"text_config": {"model_type": "mistral4", "qk_nope_head_dim": 3, "v_head_dim": 5, **HEADS}},
        TEXT[0] | at(f"{TOWER}.self_attn", {"embed_q.weight": (2, 7, 3), "unembed_out.weight": (2, 5, 7)}),
        TEXT[1] | at(f"{INNER}.self_attn", {"kv_b_proj.weight": (16, 7)}),
    ),
    **{
        family: ({}, TEXT[0] | {"language_model.lm_head.weight": (E, H)}, TEXT[1] | {"lm_head.weight": (E, H)})
        for family in ("llava", "gemma3", "gemma4_unified", "qwen3_vl", "lfm2_vl")
    },
    "gemma3n": ({}, TEXT[1], TEXT[1]),
}


def rules_of(family: str, fields: Mapping[str, Any]) -> tuple[RuleSet, Mapping[str, Any]]:
    config = {"model_type": family, "tie_word_embeddings": False, **fields}
    choice = find_choice(Config(Path("config.json"), b"", config), Wish())
    assert choice is not None
    return choice.rules_in("mlx"), config


def specs(shapes: Shapes) -> dict[str, TensorSpec]:
    return {name: TensorSpec("F32", shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("family", CASES)
def test_names_and_shapes_lead_to_the_parameters_and_back(family: str) -> None:
    fields, written, wanted = CASES[family]
    rules, config = rules_of(family, fields)
    plan = build_plan(Checkpoint.from_specs(specs(written)), rules, specs(wanted), config=config)
    plan.check()
    assert plan.params == specs(wanted)
    fresh = save_plan(rules, specs(wanted), config)
    assert {name: spec.logical() for name, spec in fresh.sources.items()} == specs(written)


@pytest.mark.parametrize("family", ["llava", "gemma3", "gemma3n", "qwen3_5", "qwen3_vl", "gemma4", "muse_glimmer"])
def test_towers_are_absent(family: str) -> None:
    rules, config = rules_of(family, {})
    towers = {"model.visual.blocks.0.w": (H,), "model.vision_tower.w": (H,), "model.multi_modal_projector.w": (H,)}
    fresh = save_plan(rules, specs(TEXT[1] | towers), config)
    assert {record.parameter for record in fresh.report.absent} == set(towers)
    assert len(fresh.sources) == len(TEXT[1])


def test_class_names_lead_there_too() -> None:
    for name in ("Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"):
        config = {"model_type": "qwen2_vl", "architectures": [name], "tie_word_embeddings": False}
        choice = find_choice(Config(Path("config.json"), b"", config), Wish())
        assert choice is not None
        fresh = save_plan(choice.rules_in("mlx"), specs(TEXT[1] | {"model.visual.w": (H,)}), config)
        assert {name: spec.logical() for name, spec in fresh.sources.items()} == specs(TEXT[0])


@pytest.mark.parametrize(
    ("family", "text", "kept"), [("gemma3n", "gemma3n_text", True), ("gemma4", "gemma4_text", False)]
)
def test_keys_of_layers_that_share_them_go_where_mlx_lm_wants_them(family: str, text: str, kept: bool) -> None:
    """Published files have them. mlx-lm's gemma3n has room for them, and asks for them; its gemma4 has none."""
    fields = {"text_config": {"model_type": text, "num_hidden_layers": 2, "num_kv_shared_layers": 1}}
    config = {"model_type": family, **fields}
    choice = find_choice(Config(Path("config.json"), b"", config), Wish())
    assert choice is not None
    names = {f"model.language_model.layers.{n}.self_attn.k_proj.weight": (H, H) for n in range(2)}
    plan = build_plan(Checkpoint.from_specs(specs(names)), choice.rules_in("hf"), config=config)
    written = plan.then(save_plan(choice.rules_in("mlx"), plan.params, config).inverse())
    assert len(written.params) == (2 if kept else 1)
