"""Published files that Transformers loads and saves as something else: here each comes back byte for byte.

Transformers runs its renames backwards over all parameters; a reload undoes it, so that its own round trip hides it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.rules.checkpoints import Array, Layout, comes_back_and_is_written, model_rules

DEEPSEEK = ("gate_proj", "up_proj", "down_proj")
MIXTRAL = ("w1", "w3", "w2")


def turned(rows: Array, heads: int) -> Array:
    """Rows of a head that were neighbours, one rotary pair after the other, as the two halves of the head."""
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def test_kimi_k25_lists_layers_of_text_and_blocks_of_vision(tmp_path: Path) -> None:
    text, vision = "language_model.model", "vision_tower.encoder"
    layout = Layout().renamed(
        {
            f"{text}.embed_tokens.weight": "model.language_model.embed_tokens.weight",
            f"{text}.layers.0.mlp.gate_proj.weight": "model.language_model.layers.0.mlp.gate_proj.weight",
            f"{text}.layers.1.mlp.gate.weight": "model.language_model.layers.1.mlp.gate.weight",
            f"{text}.norm.weight": "model.language_model.norm.weight",
            "language_model.lm_head.weight": "lm_head.weight",
            f"{vision}.blocks.0.wo.weight": "model.vision_tower.layers.0.attn.proj.weight",
            f"{vision}.blocks.0.norm0.weight": "model.vision_tower.layers.0.norm1.weight",
            f"{vision}.blocks.0.norm1.weight": "model.vision_tower.layers.0.norm2.weight",
            f"{vision}.blocks.0.mlp.fc0.bias": "model.vision_tower.layers.0.mlp.fc1.bias",
            f"{vision}.blocks.0.mlp.fc1.bias": "model.vision_tower.layers.0.mlp.fc2.bias",
            f"{vision}.final_layernorm.weight": "model.vision_tower.final_layernorm.weight",
            "vision_tower.patch_embed.proj.weight": "model.vision_tower.patch_embed.proj.weight",
            "vision_tower.patch_embed.pos_emb.weight": ("model.vision_tower.patch_embed.pos_emb.position_embeddings"),
            "mm_projector.pre_norm.weight": "model.mm_projector.pre_norm.weight",
            "mm_projector.proj.0.weight": "model.mm_projector.in_proj.weight",
            "mm_projector.proj.2.weight": "model.mm_projector.out_proj.weight",
        }
    )
    layout.experts(f"{text}.layers.1.mlp.experts", "model.language_model.layers.1.mlp.experts", DEEPSEEK)
    q, k, v = (layout.array(8, 3) for _ in range(3))
    attention = "model.vision_tower.layers.0.attn"
    layout.added(
        {f"{vision}.blocks.0.wqkv.weight": np.concatenate([q, k, v])},
        {
            f"{attention}.q_proj.weight": turned(q, 2),
            f"{attention}.k_proj.weight": turned(k, 2),
            f"{attention}.v_proj.weight": v,
        },
    )
    rules = model_rules(
        ("", "Kimi_K25ForConditionalGeneration", "kimi_k25"),
        ("model", "Kimi_K25Model", "kimi_k25"),
        ("model.vision_tower", "Kimi_K25VisionModel", "kimi_k25_vision"),
        ("model.language_model", "DeepseekV3Model", "deepseek_v3"),
    )
    comes_back_and_is_written(tmp_path, layout, rules, {"vision_config": {"num_attention_heads": 2}})


def test_qianfan_ocr_has_an_encoder_in_the_vision_tower_alone(tmp_path: Path) -> None:
    text, vision = "language_model.model", "vision_model.encoder.layers.0"
    tower = "model.vision_tower.layers.0"
    layout = Layout().renamed(
        {
            f"{text}.embed_tokens.weight": "model.language_model.embed_tokens.weight",
            f"{text}.layers.0.self_attn.q_proj.weight": "model.language_model.layers.0.self_attn.q_proj.weight",
            f"{text}.layers.11.input_layernorm.weight": "model.language_model.layers.11.input_layernorm.weight",
            f"{text}.norm.weight": "model.language_model.norm.weight",
            "language_model.lm_head.weight": "lm_head.weight",
            "mlp1.0.weight": "model.multi_modal_projector.layer_norm.weight",
            "mlp1.1.weight": "model.multi_modal_projector.linear_1.weight",
            "mlp1.3.weight": "model.multi_modal_projector.linear_2.weight",
            "vision_model.embeddings.class_embedding": "model.vision_tower.embeddings.cls_token",
            "vision_model.embeddings.patch_embedding.weight": (
                "model.vision_tower.embeddings.patch_embeddings.projection.weight"
            ),
            "vision_model.embeddings.position_embedding": "model.vision_tower.embeddings.position_embeddings",
            f"{vision}.attn.proj.weight": f"{tower}.attention.projection_layer.weight",
            f"{vision}.ls1": f"{tower}.lambda_1",
            f"{vision}.ls2": f"{tower}.lambda_2",
            f"{vision}.norm1.weight": f"{tower}.layernorm_before.weight",
            f"{vision}.norm2.weight": f"{tower}.layernorm_after.weight",
            f"{vision}.mlp.fc1.weight": f"{tower}.mlp.fc1.weight",
        }
    )
    parts = {f"{tower}.attention.{name}_proj": layout.array(2, 3) for name in "qkv"}
    layout.added(
        {f"{vision}.attn.qkv.weight": np.concatenate(list(parts.values()))},
        {f"{name}.weight": part for name, part in parts.items()},
    )
    rules = model_rules(
        ("", "QianfanOCRForConditionalGeneration", "qianfan_ocr"),
        ("model", "QianfanOCRModel", "qianfan_ocr"),
        ("model.vision_tower", "QianfanOCRVisionModel", "qianfan_ocr_vision"),
        ("model.language_model", "Qwen3Model", "qwen3"),
    )
    comes_back_and_is_written(tmp_path, layout, rules)


def _hy_v4_text(published: str, parameter: str) -> dict[str, str]:
    return {
        f"{published}.layers.{number}.{old}": f"{parameter}.layers.{number}.{new}"
        for number in (0, 1)
        for old, new in {
            "hc_pre.hc_attn_layer.hc_fn": "attn_hc.fn",
            "hc_pre.hc_mlp_layer.hc_scale": "ffn_hc.scale",
            "self_attn.linear_gate.weight": "self_attn.gate_proj.weight",
            "self_attn.learnable_sink_param": "self_attn.sinks",
            "self_attn.o_proj.weight": "self_attn.o_proj.weight",
            "mlp.gate_proj.weight": "mlp.gate_proj.weight",
            "mlp.shared_experts.gate_proj.weight": "mlp.shared_experts.gate_proj.weight",
            "mlp.down_proj.weight": "mlp.down_proj.weight",
        }.items()
    }


def test_hy_v4_has_a_linear_gate_in_attention_alone(tmp_path: Path) -> None:
    layout = Layout().renamed(_hy_v4_text("model", "model")).same(["model.norm.weight", "lm_head.weight"])
    rules = model_rules(("", "HYV4ForCausalLM", "hy_v4"), ("model", "HYV4Model", "hy_v4"))
    comes_back_and_is_written(tmp_path, layout, rules)


def test_hy_v4_vl_has_a_linear_gate_in_attention_alone(tmp_path: Path) -> None:
    layout = Layout().renamed(_hy_v4_text("model", "model.language_model"))
    layout.renamed(
        {
            "lm_head.weight": "lm_head.weight",
            "model.embed_tokens.weight": "model.language_model.embed_tokens.weight",
            "vit.layers.0.input_layernorm.weight": "model.vision_tower.layers.0.layer_norm1.weight",
            "vit.layers.0.post_attention_layernorm.weight": "model.vision_tower.layers.0.layer_norm2.weight",
            "vit.layers.0.mlp.dense_h_to_4h.weight": "model.vision_tower.layers.0.mlp.fc1.weight",
            "vit.layers.0.mlp.dense_4h_to_h.weight": "model.vision_tower.layers.0.mlp.fc2.weight",
            "vit.perceive.norm.weight": "model.vision_tower.patch_merger.before_rms.weight",
            "vit.perceive.proj.0.weight": "model.vision_tower.patch_merger.proj_conv.weight",
            "vit.perceive.proj.2.weight": "model.vision_tower.patch_merger.proj_out.weight",
        }
    )
    rules = model_rules(
        ("", "HYV4VLForConditionalGeneration", "hy_v4_vl"),
        ("model", "HYV4VLModel", "hy_v4_vl"),
        ("model.language_model", "HYV4VLTextModel", "hy_v4_vl_text"),
        ("model.vision_tower", "HYV4VLVisionModel", "hy_v4_vl_vision"),
    )
    comes_back_and_is_written(tmp_path, layout, rules)


def test_cosmos3_edge_renames_the_text_model_alone(tmp_path: Path) -> None:
    text, visual = "model.language_model", "model.visual.encoder.layers.0"
    layout = Layout().renamed(
        {
            "embed_tokens.weight": f"{text}.embed_tokens.weight",
            "norm.weight": f"{text}.norm.weight",
            "layers.0.input_layernorm.weight": f"{text}.layers.0.input_layernorm.weight",
            "layers.0.self_attn.to_q.weight": f"{text}.layers.0.self_attn.q_proj.weight",
            "layers.0.self_attn.to_k.weight": f"{text}.layers.0.self_attn.k_proj.weight",
            "layers.0.self_attn.to_v.weight": f"{text}.layers.0.self_attn.v_proj.weight",
            "layers.0.self_attn.to_out.weight": f"{text}.layers.0.self_attn.o_proj.weight",
            "layers.0.mlp.up_proj.weight": f"{text}.layers.0.mlp.fc1.weight",
            "layers.0.mlp.down_proj.weight": f"{text}.layers.0.mlp.fc2.weight",
        }
    )
    layout.same(
        [
            "lm_head.weight",
            "model.projector.linear_fc1.weight",
            f"{visual}.mlp.fc1.weight",
            f"{visual}.mlp.fc2.bias",
            *(f"{visual}.self_attn.{name}.weight" for name in ("q_proj", "k_proj", "v_proj", "out_proj")),
        ]
    )
    rules = model_rules(
        ("", "Cosmos3EdgeForConditionalGeneration", "cosmos3_edge"),
        ("model", "Cosmos3EdgeModel", "cosmos3_edge"),
        ("model.visual", "Cosmos3EdgeVisionModel", "cosmos3_edge_vision"),
        ("model.language_model", "Cosmos3EdgeTextModel", "cosmos3_edge_text"),
    )
    comes_back_and_is_written(tmp_path, layout, rules)


def test_kimi_linear_has_no_sparse_block_in_a_dense_layer(tmp_path: Path) -> None:
    moe, gate = "model.layers.1.block_sparse_moe", "model.layers.1.self_attn.forget_gate"
    layout = Layout().renamed(
        {
            f"{moe}.gate.weight": "model.layers.1.mlp.gate.weight",
            f"{moe}.gate.e_score_correction_bias": "model.layers.1.mlp.gate.e_score_correction_bias",
            f"{moe}.shared_experts.gate_proj.weight": "model.layers.1.mlp.shared_experts.gate_proj.weight",
            "model.layers.1.self_attn.f_a_proj.weight": f"{gate}.f_a_proj.weight",
            "model.layers.1.self_attn.dt_bias": f"{gate}.dt_bias",
            "model.layers.1.self_attn.A_log": f"{gate}.A_log",
        }
    )
    layout.same(["lm_head.weight", *(f"model.layers.0.mlp.{name}.weight" for name in DEEPSEEK)])
    layout.experts(f"{moe}.experts", "model.layers.1.mlp.experts", MIXTRAL)
    parts = [layout.array(4, 1, 2) for _ in "qkv"]
    layout.added(
        {f"model.layers.1.self_attn.{name}_conv1d.weight": part for name, part in zip("qkv", parts, strict=True)},
        {"model.layers.1.self_attn.conv1d.weight": np.concatenate(parts)},
    )
    rules = model_rules(("", "KimiLinearForCausalLM", "kimi_linear"), ("model", "KimiLinearModel", "kimi_linear"))
    comes_back_and_is_written(tmp_path, layout, rules)


def test_altclip_lists_layers_of_vision_and_layer_of_text(tmp_path: Path) -> None:
    layout = Layout().renamed(
        {
            f"text_model.roberta.encoder.layer.{number}.output.dense.weight": (
                f"text_model.roberta.encoder.layers.{number}.output.dense.weight"
            )
            for number in (0, 23)
        }
    )
    layout.same(
        [
            "logit_scale",
            "text_model.roberta.embeddings.LayerNorm.weight",
            *(f"vision_model.encoder.layers.{number}.mlp.fc1.weight" for number in (0, 10)),
            "vision_model.pre_layrnorm.weight",
        ]
    )
    rules = model_rules(
        ("", "AltCLIPModel", "altclip"),
        ("text_model", "AltCLIPTextModel", "altclip_text_model"),
        ("text_model.roberta", "AltRobertaModel", "altclip_text_model"),
        ("vision_model", "AltCLIPVisionModel", "altclip_vision_model"),
        base="altclip",
    )
    comes_back_and_is_written(tmp_path, layout, rules)


def test_dory_takes_turns_between_attention_and_feed_forward(tmp_path: Path) -> None:
    attention = {
        "attn_alpha": "lambda_1",
        "mixer.q_proj.weight": "self_attn.q_proj.weight",
        "mixer.g_proj.weight": "self_attn.gate_proj.weight",
        "mixer.sqk": "self_attn.sqk",
    }
    feed_forward = {
        "mlp_alpha": "lambda_2",
        "mixer.gate_proj.weight": "mlp.gate_proj.weight",
        "mixer.down_proj.weight": "mlp.down_proj.weight",
        "mixer.suv_up": "mlp.suv_up",
    }
    layout = Layout().renamed({"backbone.embeddings.weight": "model.embed_tokens.weight"}).same(["lm_head.weight"])
    for first in (0, 10):
        for turn, names in enumerate((attention, feed_forward)):
            published, layer = f"backbone.layers.{first + turn}", f"model.layers.{first // 2}"
            layout.renamed({f"{published}.{old}": f"{layer}.{new}" for old, new in names.items()})
    rules = model_rules(("", "DoryForCausalLM", "dory"), ("model", "DoryModel", "dory"))
    comes_back_and_is_written(tmp_path, layout, rules)


DEEPSEEK_V4 = {
    "embed.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "hc_head_fn": "model.hc_head.hc_fn",
    "hc_head_base": "model.hc_head.hc_base",
    "head.weight": "lm_head.weight",
    **{
        f"layers.0.{old}": f"model.layers.0.{new}"
        for old, new in {
            "attn_norm.weight": "input_layernorm.weight",
            "ffn_norm.weight": "post_attention_layernorm.weight",
            "attn.norm.weight": "self_attn.kv_norm.weight",
            "attn.q_norm.weight": "self_attn.q_a_norm.weight",
            "attn.wq_a.weight": "self_attn.q_a_proj.weight",
            "attn.wq_b.weight": "self_attn.q_b_proj.weight",
            "attn.attn_sink": "self_attn.sinks",
            "attn.compressor.norm.weight": "self_attn.compressor.kv_norm.weight",
            "attn.compressor.wgate.weight": "self_attn.compressor.gate_proj.weight",
            "attn.compressor.ape": "self_attn.compressor.position_bias",
            "ffn.gate.bias": "mlp.gate.e_score_correction_bias",
            "ffn.gate.tid2eid": "mlp.gate.tid2eid",
            "ffn.shared_experts.w1.weight": "mlp.shared_experts.gate_proj.weight",
            "ffn.shared_experts.w2.weight": "mlp.shared_experts.down_proj.weight",
            "hc_attn_fn": "attn_hc.fn",
            "hc_ffn_scale": "ffn_hc.scale",
        }.items()
    },
}


def test_deepseek_v4_has_bare_names(tmp_path: Path) -> None:
    layout = Layout().renamed(DEEPSEEK_V4).experts("layers.0.ffn.experts", "model.layers.0.mlp.experts", MIXTRAL)
    rules = model_rules(("", "DeepseekV4ForCausalLM", "deepseek_v4"), ("model", "DeepseekV4Model", "deepseek_v4"))
    comes_back_and_is_written(tmp_path, layout, rules)


def test_deepseek_v4_without_its_head_takes_the_same_names(tmp_path: Path) -> None:
    """The final norm is not the norm of an attention, though nothing stands before it."""
    bare = {old: new.removeprefix("model.") for old, new in DEEPSEEK_V4.items() if old != "head.weight"}
    layout = Layout().renamed(bare).experts("layers.0.ffn.experts", "layers.0.mlp.experts", MIXTRAL)
    rules = model_rules(("", "DeepseekV4Model", "deepseek_v4"))
    comes_back_and_is_written(tmp_path, layout, rules)
