"""Families with states, convolutions, towers, or norms of another scale."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family

_TOWERS = (r"^model\.(?!language_model\.)",)
_FOUR = {"text_config": {"num_hidden_layers": 4}}
_SIX = {"text_config": {"num_hidden_layers": 6}}
_ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
_SECTIONS = {"text_config": {"rope_parameters": _ROPE}}
_SHARED = {
    "num_hidden_layers": 4,
    "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}
_GEMMA4_EXPERTS = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 24}
_GEMMA4_SIGHT = {
    "vision_config": {
        "model_type": "gemma4_vision",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "patch_size": 4,
    }
}
_GEMMA3N = {
    "text_config": {
        "vocab_size": 128,
        "vocab_size_per_layer_input": 128,
        "num_hidden_layers": 5,
        "hidden_size": 32,
        "intermediate_size": 48,
        "head_dim": 8,
        "laurel_rank": 8,
        "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 0,
        "activation_sparsity_pattern": None,
    },
    "audio_config": {
        "vocab_size": 8,
        "vocab_offset": 120,
        "hidden_size": 32,
        "conf_num_attention_heads": 4,
        "conf_num_hidden_layers": 2,
        "sscp_conv_channel_size": [8, 8],
        "input_feat_size": 16,
    },
    "vision_config": {
        "vocab_size": 8,
        "vocab_offset": 112,
        "hidden_size": 32,
        "architecture": "resnet10t",
        "model_args": {"channels": [8, 8, 16, 32], "stem_width": 8},
        "do_pooling": False,
    },
    "audio_token_id": 110,
    "image_token_id": 111,
}
_LATENT = {
    "text_config": {
        "model_type": "mistral4",
        "num_key_value_heads": 4,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 24,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
    }
}
_FACTORS = {
    "attention_in_multiplier": 1.0,
    "attention_out_multiplier": 0.9375,
    "embedding_multiplier": 5.656854249492381,
    "lm_head_multiplier": 0.0390625,
    "mlp_multipliers": [0.8838834764831844, 0.5859375],
    "ssm_in_multiplier": 1.25,
    "ssm_out_multiplier": 0.23570226039551587,
    "ssm_multipliers": [0.3535533905932738, 0.25, 0.1767766952966369, 0.5, 0.3535533905932738],
}
_SPARK = {
    "text_config": {
        "vocab_size": 128,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention"],
        "layer_rope_theta": [1e4, 0],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "moe_hidden_size": 16,
        "moe_intermediate_size": 16,
        "mlp_layer_types": ["sparse", "sparse"],
    },
    "vision_config": {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 4},
    "audio_config": {"patch_sizes": [4, 2], "hidden_sizes": [8, 16], "depths": [1, 1], "out_hidden_size": 32},
    "out_hidden_size": 64,
    "projector_hidden_size": 16,
}

HYBRID: tuple[Family, ...] = (
    Family("mamba"),
    Family("falcon_mamba"),
    Family("mamba2", changes={"num_heads": 8, "head_dim": 8, "n_groups": 1, "state_size": 8}),
    Family("recurrent_gemma", changes={"num_key_value_heads": 1, "hidden_size": 64, "lru_width": 64}),
    Family("jamba", agrees=None, why="mlx-lm scales the chosen experts to a sum of one"),
    Family("jamba", changes={"num_experts_per_tok": 4}, variant="all experts"),
    Family("nemotron_h", changes={"n_groups": 2}),
    Family("granitemoehybrid"),
    Family("granitemoehybrid", changes={"num_local_experts": 0}, variant="dense"),
    Family("qwen3_next"),
    Family("qwen3_5", changes=_FOUR, destroyed=_TOWERS),
    Family(
        "qwen3_5",
        changes={**_FOUR, "tie_word_embeddings": True},
        destroyed=_TOWERS,
        variant="tied",
        dtype="bfloat16",
        agrees=None,
        why="in bfloat16",
        rounds=1e-2,
    ),
    Family("qwen3_5_moe", changes=_FOUR, destroyed=_TOWERS),
    Family(
        "olmo_hybrid",
        named=(
            (r"\.attention_layer_norm\.", ".input_layernorm."),
            (r"\.feedforward_layer_norm\.", ".post_attention_layernorm."),
        ),
    ),
    Family("falcon_h1"),
    Family("falcon_h1", changes=_FACTORS, variant="factors"),
    Family(
        "falcon_h1", changes=_FACTORS, variant="bfloat16", dtype="bfloat16", agrees=None, why="in bfloat16", rounds=1e-1
    ),
    Family("lfm2", changes={"layer_types": ["conv", "full_attention"]}),
    Family(
        "lfm2_vl",
        changes={"text_config": {"layer_types": ["conv", "full_attention"]}},
        destroyed=_TOWERS,
        reads_published=False,
    ),
    Family("gemma3", changes=_SIX, destroyed=_TOWERS, agrees=2e-3, why="mlx-lm rounds a scale to bfloat16"),
    Family("gemma3n", changes=_GEMMA3N, destroyed=_TOWERS),
    Family("gemma4", destroyed=_TOWERS),
    Family("gemma4", changes=_GEMMA4_SIGHT, variant="seeing", destroyed=_TOWERS),
    Family("gemma4_text"),
    Family("gemma4_text", changes=_SHARED, variant="shared"),
    Family("gemma4_text", changes=_GEMMA4_EXPERTS, variant="experts"),
    Family("gemma4_unified", destroyed=_TOWERS),
    Family("mistral3", destroyed=_TOWERS),
    Family("mistral3", changes={"text_config": {"model_type": "ministral3"}}, variant="ministral3", destroyed=_TOWERS),
    Family("mistral3", changes=_LATENT, variant="mistral4", destroyed=_TOWERS),
    Family("mistral4", changes={"num_key_value_heads": 4}),
    Family("llava", destroyed=_TOWERS),
    Family("qwen2_vl", changes=_SECTIONS, destroyed=_TOWERS),
    Family("qwen2_5_vl", changes=_SECTIONS, destroyed=_TOWERS),
    Family("qwen3_vl", changes=_SECTIONS, destroyed=_TOWERS),
    Family("muse_glimmer", named=((r"^model\.(vision_)", r"\1"),), destroyed=_TOWERS),
    Family(
        "muse_spark",
        changes=_SPARK,
        dtype="bfloat16",
        destroyed=(r"^model\.audio_tower\.",),
        agrees=None,
        rounds=1e-1,
        unrun="mlx-lm has kernels for Metal alone",
    ),
)
