"""mlx-lm's names and shapes of expert and latent-attention families, against the parameters that they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from weightloom.engine import Checkpoint, TensorSpec, build_plan, save_plan
from weightloom.rules import load_rules

E, H, W, V, R = 3, 8, 6, 5, 4  # experts, hidden size, width of an expert, width of a head's values, rank
HEADS, NOPE = 2, 7
LATENT = {"num_attention_heads": HEADS, "qk_nope_head_dim": NOPE, "v_head_dim": V}
FUSED = {"experts.gate_up_proj": (E, 2 * W, H), "experts.down_proj": (E, H, W)}
SWITCH = {
    "switch_mlp.gate_proj.weight": (E, W, H),
    "switch_mlp.up_proj.weight": (E, W, H),
    "switch_mlp.down_proj.weight": (E, H, W),
}
Shapes = Mapping[str, tuple[int, ...]]


def at(place: str, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The same below a place."""
    return {f"{place}.{name}": shape for name, shape in shapes.items()}


def absorbed(place: str) -> dict[str, tuple[int, ...]]:
    return at(place, {"embed_q.weight": (HEADS, R, NOPE), "unembed_out.weight": (HEADS, V, R)})


def latent(place: str) -> dict[str, tuple[int, ...]]:
    return {f"{place}.kv_b_proj.weight": (HEADS * (NOPE + V), R)}


def plain(*names: str) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(names, (H, H))


MLP, TEXT = "model.layers.0.mlp", "language_model.model.layers.0"
MOE, INNER = "model.layers.0.block_sparse_moe", "model.language_model.layers.0"
ATTENTION = "model.layers.0.self_attn"
CASES: Mapping[str, tuple[Mapping[str, Any], Shapes, Shapes]] = {
    "mixtral": ({}, at(MOE, SWITCH) | plain(f"{MOE}.gate.weight"), at(MLP, FUSED) | plain(f"{MLP}.gate.weight")),
    "phimoe": ({}, at(MOE, SWITCH) | plain(f"{MOE}.gate.weight"), at(MLP, FUSED) | plain(f"{MLP}.router.weight")),
    "minimax_m2": (
        {},
        at(MOE, SWITCH) | plain(f"{MOE}.e_score_correction_bias"),
        at(MLP, FUSED) | plain(f"{MLP}.e_score_correction_bias"),
    ),
    "granitemoe": (
        {},
        at(MOE, SWITCH) | plain(f"{MOE}.router.layer.weight"),
        at(MOE, FUSED) | plain(f"{MOE}.router.weight"),
    ),
    **{
        family: ({}, at(MLP, SWITCH) | plain(f"{MLP}.gate.weight"), at(MLP, FUSED) | plain(f"{MLP}.gate.weight"))
        for family in ("qwen2_moe", "qwen3_moe", "olmoe", "glm4_moe", "solar_open", "deepseek_v2", "exaone_moe")
    },
    **{
        family: (LATENT, at(MLP, SWITCH) | absorbed(ATTENTION), at(MLP, FUSED) | latent(ATTENTION))
        for family in ("deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa")
    },
    "longcat_flash": (LATENT, absorbed(f"{ATTENTION}.1"), latent(f"{ATTENTION}.1")),
    **{
        family: ({}, at(f"{MLP}.experts", {name.split(".", 1)[1]: s for name, s in SWITCH.items()}), at(MLP, FUSED))
        for family in ("dots1", "afmoe")
    },
    "laguna": (
        {},
        plain(f"{MLP}.gate.proj.weight", f"{MLP}.gate.e_score_correction_bias", f"{MLP}.shared_expert.up_proj.weight"),
        plain(f"{MLP}.gate.weight", f"{MLP}.gate.e_score_correction_bias", f"{MLP}.shared_experts.up_proj.weight"),
    ),
    "mimo_v2_flash": ({}, plain(f"{ATTENTION}.attention_sink_bias"), plain(f"{ATTENTION}.sinks")),
    "kimi_linear": (
        LATENT,
        {f"{ATTENTION}.{part}_conv.conv.weight": (H, 4, 1) for part in "qkv"}
        | plain(f"{ATTENTION}.f_a_proj.weight", f"{ATTENTION}.A_log", f"{MLP}.e_score_correction_bias"),
        {f"{ATTENTION}.conv1d.weight": (3 * H, 1, 4)}
        | at(f"{ATTENTION}.forget_gate", plain("f_a_proj.weight", "A_log"))
        | plain(f"{MLP}.gate.e_score_correction_bias"),
    ),
    "bailing_hybrid": (
        LATENT | {"num_hidden_layers": 2, "layer_group_size": 2},
        {f"model.layers.0.attention.{part}_conv1d.weight": (H, 4, 1) for part in "qkv"}
        | plain("model.word_embeddings.weight", f"{MLP}.gate.expert_bias")
        | plain("model.layers.0.attention.o_proj.weight", "model.layers.1.attention.dense.weight")
        | absorbed("model.layers.1.attention"),
        {f"{ATTENTION}.conv1d.weight": (3 * H, 1, 4)}
        | plain("model.embed_tokens.weight", f"{MLP}.gate.e_score_correction_bias")
        | plain(f"{ATTENTION}.o_proj.weight", "model.layers.1.self_attn.o_proj.weight")
        | latent("model.layers.1.self_attn"),
    ),
    "lfm2_moe": (
        {},
        at("model.layers.1.feed_forward", SWITCH)
        | plain("model.layers.0.feed_forward.up_proj.weight")
        | {"model.layers.0.conv.conv.weight": (H, 3, 1)},
        at("model.layers.1.feed_forward", FUSED)
        | plain("model.layers.0.feed_forward.w3.weight")
        | {"model.layers.0.conv.conv.weight": (H, 1, 3)},
    ),
    "kimi_k25": (
        {"text_config": LATENT},
        absorbed(f"{TEXT}.self_attn") | at(f"{TEXT}.mlp", SWITCH) | plain("language_model.lm_head.weight"),
        latent(f"{INNER}.self_attn") | at(f"{INNER}.mlp", FUSED) | plain("lm_head.weight"),
    ),
    "qwen3_vl_moe": (
        {},
        at(f"{TEXT}.mlp", SWITCH) | plain("language_model.lm_head.weight"),
        at(f"{INNER}.mlp", FUSED) | plain("lm_head.weight"),
    ),
    "minimax_m3_vl": (
        {},
        at(f"{TEXT}.block_sparse_moe", SWITCH)
        | plain(f"{TEXT}.block_sparse_moe.gate.weight", f"{TEXT}.self_attn.index_q_proj.weight")
        | at(f"{TEXT}.block_sparse_moe.shared_experts", {"gate_proj.weight": (W, H), "up_proj.weight": (W, H)}),
        at(f"{INNER}.mlp", FUSED)
        | plain(f"{INNER}.mlp.gate.weight", f"{INNER}.self_attn.indexer.q_proj.weight")
        | {f"{INNER}.mlp.shared_experts.gate_up_proj.weight": (2 * W, H)},
    ),
    "gpt_oss": (
        {},
        at(
            f"{MLP}.experts",
            {
                "gate_proj.weight": (E, W, H),
                "up_proj.weight": (E, W, H),
                "down_proj.weight": (E, H, W),
                "gate_proj.bias": (E, W),
                "up_proj.bias": (E, W),
                "down_proj.bias": (E, H),
            },
        ),
        at(
            f"{MLP}.experts",
            {
                "gate_up_proj": (E, H, 2 * W),
                "down_proj": (E, W, H),
                "gate_up_proj_bias": (E, 2 * W),
                "down_proj_bias": (E, H),
            },
        ),
    ),
    "llama4_text": (
        {},
        at(
            f"{TEXT}.feed_forward.experts",
            {"gate_proj.weight": (E, W, H), "up_proj.weight": (E, W, H), "down_proj.weight": (E, H, W)},
        ),
        at(f"{TEXT}.feed_forward.experts", {"gate_up_proj": (E, H, 2 * W), "down_proj": (E, W, H)}),
    ),
    "dbrx": (
        {"ffn_config": {"moe_num_experts": E}},
        {f"transformer.blocks.0.ffn.experts.{n}.v1.weight": (W, H) for n in range(E)}
        | {f"transformer.blocks.0.ffn.experts.{n}.w2.weight": (H, W) for n in range(E)},
        {f"transformer.blocks.0.ffn.experts.mlp.{name}": (E * W, H) for name in ("v1", "w2")},
    ),
    "step3p5": (
        {},
        at(MLP, SWITCH)
        | plain(f"{MLP}.gate.gate.weight", f"{MLP}.gate.router_bias", f"{MLP}.share_expert.up_proj.weight"),
        at(MLP, FUSED)
        | plain(f"{MLP}.gate.weight", f"{MLP}.gate.e_score_correction_bias", f"{MLP}.shared_experts.up_proj.weight"),
    ),
}


def specs(shapes: Shapes, dtype: str = "BF16") -> dict[str, TensorSpec]:
    return {name: TensorSpec(dtype, shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("family", CASES)
def test_read_and_written(family: str) -> None:
    config, held, wanted = CASES[family]
    rules = load_rules(family, "mlx")
    plan = build_plan(Checkpoint.from_specs(specs(held)), rules, config=config)
    plan.check()
    assert dict(plan.params) == specs(wanted)
    assert {name: spec.logical() for name, spec in save_plan(rules, plan.params, config).sources.items()} == specs(held)


@pytest.mark.parametrize(
    ("family", "absent"),
    [
        ("ernie4_5_moe", f"{MLP}.gate.moe_statics.e_score_correction_bias"),
        ("kimi_k25", "model.mm_projector.in_proj.weight"),
        ("qwen3_vl_moe", "model.visual.pos_embed.weight"),
        ("minimax_m3_vl", "model.vision_tower.layers.0.mlp.fc1.weight"),
        ("llama4", "vision_model.class_embedding"),
    ],
)
def test_what_it_has_no_room_for(family: str, absent: str) -> None:
    """It is not written, and the rule says so."""
    config, kept = {"tie_word_embeddings": False}, "lm_head.weight"
    plan = save_plan(load_rules(family, "mlx"), specs(plain(absent, kept)), config)
    assert absent not in plan.params
    assert kept in plan.params
    assert [record.parameter for record in plan.report.absent] == [absent]


def test_words_of_codes_are_blocks_of_bytes() -> None:
    """gpt_oss, as published: 32 codes of 4 bits have a scale."""
    words = {"gate_proj.weight": (E, 4, 8), "up_proj.weight": (E, 4, 8), "down_proj.weight": (E, 64, 4)}
    scales = {"gate_proj.scales": (E, 4, 2), "up_proj.scales": (E, 4, 2), "down_proj.scales": (E, 64, 1)}
    place = f"{MLP}.experts"
    held = specs(at(place, words), "U32") | specs(at(place, scales), "U8")
    wanted = {
        "gate_up_proj_blocks": (E, 8, 2, 16),
        "gate_up_proj_scales": (E, 8, 2),
        "down_proj_blocks": (E, 64, 1, 16),
        "down_proj_scales": (E, 64, 1),
    }
    config = {"quantization_config": {"quant_method": "mxfp4"}}
    rules = load_rules("gpt_oss", "mlx")
    plan = build_plan(Checkpoint.from_specs(held), rules, config=config)
    plan.check()
    assert dict(plan.params) == specs(at(place, wanted), "U8")
    assert {name: spec.logical() for name, spec in save_plan(rules, plan.params, config).sources.items()} == held
