"""What a tiny config needs besides small sizes, so that its model can be built and every rule finds a layer.

By class name, key, or model type. A dict for a sub-config goes into it.
"""

from __future__ import annotations

from typing import Any

Table = dict[str, dict[str, Any]]

_SWIGLU = {"use_swiglu_ffn": True}
_DENSE_SPARSE = {"mlp_layer_types": ["dense", "sparse"]}
_INKLING2 = {
    "num_hidden_layers": 6,
    "n_layers_per_attn_res_block": 2,
    "layer_types": ["hybrid_sliding", "hybrid"] * 3,
    "unpadded_vocab_size": 120,
}
_INKLING2_LOOP = _INKLING2 | {"loop_layer_index_start": 2, "loop_layer_index_end": 4}
_GLM5 = _DENSE_SPARSE | {
    "num_key_value_heads": 4,
    "head_dim": 0,
    "qk_rope_head_dim": 0,
    "layer_types": ["linear_attention", "indexed_attention"],
}

_TEXT: Table = {
    "beam": _DENSE_SPARSE | {"n_group": 1, "topk_group": 1},
    "deepseek_v4": {
        "num_hidden_layers": 4,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "o_groups": 2,
        "o_lora_rank": 8,
        "layer_types": ["sliding_attention", "heavily_compressed_attention", *["compressed_sparse_attention"] * 2],
        "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"],
    },
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1},
    "flint": {"mlp_only_layers": [0]},
    "gemma3n_text": {
        "num_hidden_layers": 5,
        "num_kv_shared_layers": 0,
        "intermediate_size": 48,
        "activation_sparsity_pattern": None,
    },
    "glm5_next_text": _GLM5,
    "granitemoehybrid": {
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_d_state": 8,
        "layer_types": ["mamba", "attention"],
    },
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8, "num_experts": 4, "moe_topk": 2, "moe_intermediate_size": 24},
    "hy_v4_vl_text": {"qk_rope_head_dim": 64},
    "inkling2_loop_text": _INKLING2_LOOP,
    "inkling2_text": _INKLING2,
    "jamba": {
        "num_hidden_layers": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
    },
    "lfm2_moe": {"num_dense_layers": 1, "layer_types": ["conv", "full_attention"]},
    "lfm3": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 2, "state_size": 8},
    "nemotron_h": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "moe", "attention", "mlp"]},
    "qwen3_5_moe_text": {"num_hidden_layers": 4},
    "qwen3_5_text": {"num_hidden_layers": 4},
    "qwen3_next": {"num_hidden_layers": 4},
    "qwen4_exp_text": {
        "ple_layer_ids": [1],
        "ple_embed_dim": 32,
        "heads_per_ngram": 2,
        "ngram_vocab_size_base": 50,
        "make_ngram_vocab_size_divisible_by": 8,
        "split_ngram_parts": 4,
        "layer_types": ["linear_attention", "indexed_attention"],
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
        "eos_token_id": 2,
    },
    "recurrent_gemma": {"num_hidden_layers": 3},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "esm": {
        "vocab_size": 33,
        "pad_token_id": 1,
        "mask_token_id": 32,
        "emb_layer_norm_before": True,
        "position_embedding_type": "rotary",
    },
}

_OTHERS: Table = {
    "Dinov2Backbone": _SWIGLU,
    "Dinov2Model": _SWIGLU,
    "Dinov2WithRegistersBackbone": _SWIGLU,
    "Dinov2WithRegistersModel": _SWIGLU,
    "Tipsv2VisionBackbone": _SWIGLU,
    "Tipsv2VisionModel": _SWIGLU,
    "cosmos3_edge": {"text_config": {"head_dim": 128}},
    "deepseek_ocr2": {
        "text_config": _DENSE_SPARSE
        | {"num_key_value_heads": 2, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2, "num_hidden_layers": 2},
        "vision_config": {
            "sam_config": {
                "hidden_size": 32,
                "output_channels": 16,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "image_size": 64,
                "patch_size": 8,
                "mlp_dim": 48,
                "window_size": 4,
                "global_attn_indexes": [1],
                "downsample_channels": [16, 32],
            },
            "encoder_config": {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2},
        },
    },
    "dinov3_convnext": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
    "ernie4_5_vl_moe": {
        "text_config": _DENSE_SPARSE
        | {
            "hidden_size": 512,
            "head_dim": 128,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "moe_num_experts": 4,
            "moe_k": 2,
            "moe_intermediate_size": [24, 16],
            "intermediate_size": 48,
        }
    },
    "gemma4_unified": {
        "vision_config": {"patch_size": 4, "mm_embed_dim": 32, "mm_posemb_size": 16, "output_proj_dims": 32},
        "audio_config": {"audio_embed_dim": 32},
    },
    "glm5_next": {"text_config": _GLM5},
    "hunyuan_vl": {"text_config": {"head_dim": 8}},
    "hy_v4_vl": {"text_config": {"qk_rope_head_dim": 64}},
    "inkling2": {"text_config": _INKLING2},
    "inkling2_loop": {"text_config": _INKLING2_LOOP},
    "inkling_mm_model": {"text_config": _DENSE_SPARSE},
    "kimi_k25": {"text_config": {"first_k_dense_replace": 1, "num_hidden_layers": 2}},
    "lfm3_vl_vision": {"layer_types": ["conv", "full_attention"]},
    "lw_detr": {"backbone_config": {"image_size": 64, "num_windows": 4}},
    "minimax_m3_vl": {"text_config": _DENSE_SPARSE | {"layer_types": ["full_attention", "minimax_m3_sparse"]}},
    "molmo2": {"adapter_config": {"vision_feature_layer": [-1, 0]}},
    "nemo_speechlm": {"audio_config": {"diarization_config": {"chunk_length": 64, "chunk_right_context": 4}}},
    "qwen3_omni_moe": {
        "talker_config": {"spatial_merge_size": 2, "text_config": {"shared_expert_intermediate_size": 24}}
    },
    "step3p7": {"text_config": _DENSE_SPARSE},
}

CHANGES: Table = _TEXT | _OTHERS

# A second model of a key whose first one leaves some rules or layouts out: key -> {name: changes}.
VARIANTS: dict[str, Table] = {
    "Dinov2Model": {"mlp": {"use_swiglu_ffn": False}},
    "Tipsv2VisionModel": {"mlp": {"use_swiglu_ffn": False}},
    "deepseek_v3": {"whole_queries": {"q_lora_rank": None}},
    "dinov3_vit": {"gated": {"use_gated_mlp": True}},
    "gemma3": {"untied": {"tie_word_embeddings": False}},
    "mixtral": {"tied": {"tie_word_embeddings": True}},
    "paligemma": {"untied": {"tie_word_embeddings": False, "text_config": {"tie_word_embeddings": False}}},
    "qwen2_moe": {"dense": {"mlp_only_layers": [0]}},
    "qwen3_vl_moe": {"square": {"text_config": {"hidden_size": 48, "moe_intermediate_size": 24}}},
    "radio": {"video": {"video_temporal_patch_size": 2}},
}
