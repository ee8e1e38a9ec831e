"""Families with experts or latent attention."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family
from tests.oracle.mlx_layouts.relaid import blocks_of_codes, both_ends, further_layer, turned_experts

# Keys and values of a head differ in width, so that a cut in the wrong place shows.
_LATENT = {"num_attention_heads": 4, "num_key_value_heads": 4, "v_head_dim": 12}
# mlx-lm reads these two only with scaled rotary frequencies, as published.
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 2.0,
    "original_max_position_embeddings": 32,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "beta_fast": 32,
    "beta_slow": 1,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
_HALF = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
_CPU = "MLX gathers matrices on a CPU in float32 alone"
_UNTIED = {"tie_word_embeddings": False}
# Every fourth layer of llama4 has no rotation and sees all.
_FOUR_LAYERS = {
    "num_hidden_layers": 4,
    "no_rope_layers": [1, 1, 1, 0],
    "moe_layers": [1, 3],
    "interleave_moe_layer_step": 2,
    "layer_types": [*["chunked_attention"] * 3, "full_attention"],
    "rope_parameters": _LLAMA3,
}
_KIMI_LAYERS = {
    "num_hidden_layers": 3,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "mlp_layer_types": ["dense", "sparse", "sparse"],
}
_KIMI_READS = {
    "rope_theta": 10000.0,
    "first_k_dense_replace": 1,
    "mla_use_nope": True,
    "linear_attn_config": {
        "full_attn_layers": [2],
        "kda_layers": [1, 3],
        "num_heads": 4,
        "head_dim": 8,
        "short_conv_kernel_size": 4,
    },
}
_MIMO_READS = {
    "n_shared_experts": None,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 4,
    "swa_head_dim": 8,
    "swa_v_head_dim": 8,
}
# Inner axes that blocks of 32 codes divide.
_GPT_OSS = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "layer_types": ["sliding_attention", "full_attention"],
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 150000.0,
        "factor": 2.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": True,
        "original_max_position_embeddings": 32,
    },
}
_TOWERS = (r"^model\.(vision_tower|mm_projector|multi_modal_projector|visual)\.",)

EXPERTS = (
    Family("mixtral"),
    Family("qwen2_moe"),
    Family("qwen3_moe"),
    Family("olmoe"),
    Family("phimoe", {"attention_bias": True, "lm_head_bias": True}),
    Family("granitemoe"),
    Family("deepseek_v2", _LATENT | {"num_experts_per_tok": 2, "rope_parameters": _YARN}),
    Family("deepseek_v3", _LATENT),
    Family("deepseek_v32", _LATENT | {"index_n_heads": 16}),
    Family("kimi_k25", {"text_config": _LATENT | _UNTIED} | _UNTIED, destroyed=_TOWERS),
    Family("kimi_linear", _LATENT | _KIMI_LAYERS, reads=_KIMI_READS),
    Family("glm4_moe", reads={"rope_scaling": None}),
    Family("glm4_moe_lite", _LATENT),
    Family("glm_moe_dsa", _LATENT | {"index_n_heads": 16}),
    Family("ernie4_5_moe", destroyed=(r"\.e_score_correction_bias$",), agrees=None, why="score corrections dropped"),
    Family("exaone_moe"),
    Family("minimax_m2"),
    Family("minimax_m3_vl", {"text_config": {"rotary_dim": 4, "rope_parameters": _HALF}}, destroyed=_TOWERS),
    Family("dots1"),
    Family("afmoe"),
    Family(
        "bailing_hybrid",
        _LATENT | {"layer_group_size": 2},
        reads={"architectures": ["BailingMoeV3ForCausalLM"]},
        named=((r"(\.layers\.0\.attention)\.dense\.", r"\1.o_proj."),),
    ),
    Family("lfm2_moe"),
    Family("longcat_flash", _LATENT | {"zero_expert_num": 0}),
    Family("laguna"),
    Family("mimo_v2_flash", reads=_MIMO_READS),
    Family("solar_open"),
    Family(
        "llama4",
        {"text_config": _FOUR_LAYERS},
        destroyed=(r"^vision_model\.", r"^multi_modal_projector\."),
        part="language_model",
    ),
    Family("qwen3_vl_moe", _UNTIED | {"text_config": _UNTIED}, relaid=turned_experts, destroyed=_TOWERS),
    Family("gpt_oss", _GPT_OSS, relaid=blocks_of_codes),
    Family("dbrx", {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}}),
    Family("qwen3_moe", {"tie_word_embeddings": True}, variant="tied"),
    Family("granitemoe", {"tie_word_embeddings": True}, variant="tied"),
    Family("granitemoe", {"tie_word_embeddings": True}, relaid=both_ends, variant="both_ends"),
    Family("qwen3_moe", {"tie_word_embeddings": True}, relaid=both_ends, variant="both_ends"),
    Family("qwen3_moe", dtype="bfloat16", agrees=None, unrun=_CPU, variant="bf16"),
    Family("deepseek_v3", _LATENT, dtype="bfloat16", agrees=None, unrun=_CPU, variant="bf16"),
    Family(
        "kimi_linear",
        _LATENT | _KIMI_LAYERS,
        reads=_KIMI_READS,
        dtype="bfloat16",
        agrees=None,
        unrun=_CPU,
        variant="bf16",
    ),
    Family("glm4_moe", reads={"rope_scaling": None}, relaid=further_layer, variant="further"),
    Family("deepseek_v3", _LATENT, relaid=further_layer, reads_published=False, variant="further"),
)
