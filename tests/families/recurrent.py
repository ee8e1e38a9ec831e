"""Families whose layers, or most of them, keep a state of fixed size."""

from tests.families.family import SIZES, Case, Family

LINEAR = {
    "head_dim": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
QWEN_EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}
PARTIAL = {"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5}

FAMILIES = (
    Family(
        "lfm2",
        (
            Case("two in three are convolutions", {"layer_types": ["conv", "full_attention", "conv"]}),
            Case(
                "biases, widths as they stand, a head of its own",
                {
                    "layer_types": ["conv", "conv", "full_attention"],
                    "conv_bias": True,
                    "conv_L_cache": 4,
                    "block_auto_adjust_ff_dim": False,
                    "tie_word_embeddings": False,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                },
            ),
        ),
        class_name="Lfm2ForCausalLM",
        sizes={**SIZES, "block_multiple_of": 32, "norm_eps": 1e-5},
        older={"tie_word_embeddings": "tie_embedding"},
    ),
    Family(
        "lfm2_moe",
        (
            Case("a dense layer", {"layer_types": ["conv", "full_attention", "conv"]}),
            Case(
                "biases, none on scores, plain weights",
                {
                    "layer_types": ["conv", "conv", "full_attention"],
                    "conv_bias": True,
                    "use_expert_bias": False,
                    "norm_topk_prob": False,
                    "routed_scaling_factor": 1.5,
                    "tie_word_embeddings": False,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                },
            ),
        ),
        class_name="Lfm2MoeForCausalLM",
        sizes={
            **SIZES,
            "norm_eps": 1e-5,
            "num_dense_layers": 1,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
        },
        published=("model.layers.2.feed_forward.experts.3.w1.weight", "model.layers.0.conv.conv.weight"),
    ),
    Family(
        "qwen3_next",
        (
            Case("a quarter turns", {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
            Case(
                "a dense layer, plain weights, tied, biases, half turns",
                {
                    "num_hidden_layers": 4,
                    "attention_bias": True,
                    "norm_topk_prob": False,
                    "mlp_only_layers": [1],
                    "tie_word_embeddings": True,
                    "linear_num_value_heads": 2,
                    "linear_conv_kernel_dim": 3,
                    "rope_parameters": PARTIAL,
                },
            ),
        ),
        class_name="Qwen3NextForCausalLM",
        spread=0.2,
        sizes={**SIZES, **LINEAR, **QWEN_EXPERTS},
        older={"num_local_experts": "num_experts"},
        published=("model.layers.0.mlp.experts.3.gate_proj.weight", "model.layers.0.linear_attn.conv1d.weight"),
    ),
    Family(
        "qwen3_5_text",
        (
            Case("a quarter turns", {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
            Case(
                "tied, biases, sections of positions",
                {
                    "num_hidden_layers": 4,
                    "attention_bias": True,
                    "tie_word_embeddings": True,
                    "linear_num_value_heads": 2,
                    "rope_parameters": {**PARTIAL, "mrope_interleaved": True, "mrope_section": [2, 1, 1]},
                },
            ),
        ),
        class_name="Qwen3_5ForCausalLM",
        sizes={**SIZES, **LINEAR},
        spread=0.2,
        published=("model.layers.0.linear_attn.in_proj_qkv.weight",),
    ),
    Family(
        "qwen3_5_moe_text",
        (
            Case("a quarter turns", {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
            Case(
                "three of four, tied, half turns",
                {
                    "num_hidden_layers": 4,
                    "num_experts_per_tok": 3,
                    "tie_word_embeddings": True,
                    "linear_conv_kernel_dim": 3,
                    "rope_parameters": PARTIAL,
                },
            ),
        ),
        class_name="Qwen3_5MoeForCausalLM",
        sizes={**SIZES, **LINEAR, **QWEN_EXPERTS},
        spread=0.2,
        older={"num_local_experts": "num_experts"},
    ),
    Family(
        "recurrent_gemma",
        (
            Case("two in three are recurrent", {"num_key_value_heads": 1}),
            Case(
                "attention first, biases, no ties, a wide recurrence",
                {
                    "block_types": ["attention", "recurrent"],
                    "attention_bias": True,
                    "tie_word_embeddings": False,
                    "lru_width": 64,
                    "conv1d_width": 3,
                    "logits_soft_cap": 4.0,
                    "hidden_activation": "silu",
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 1.0},
                },
            ),
        ),
        class_name="RecurrentGemmaForCausalLM",
        sizes={**SIZES, "attention_window_size": 9},
        spread=0.2,
    ),
    Family(
        "rwkv7",
        (
            Case("plain"),
            Case(
                "tied, wide heads, odd ranks",
                {
                    "tie_word_embeddings": True,
                    "head_dim": 16,
                    "norm_eps": 4e-5,
                    "a_low_rank_dim": 5,
                    "v_low_rank_dim": 3,
                    "gate_low_rank_dim": 32,
                },
            ),
        ),
        peer="mlx_lm",
        # mlx-lm adds 64e-5 in its group norm, whatever the size of heads.
        sizes={
            "vocab_size": 64,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "head_dim": 8,
            "norm_eps": 8e-5,
            "decay_low_rank_dim": 8,
            "gate_low_rank_dim": 8,
            "a_low_rank_dim": 8,
            "v_low_rank_dim": 8,
            "tie_word_embeddings": False,
        },
        published=("model.layers.1.attn.v_lora.lora.2.bias", "model.layers.0.pre_norm.weight"),
    ),
    Family(
        "olmo_hybrid",
        (
            Case("nothing turns", {"rope_parameters": {"rope_type": "default", "rope_theta": None}}),
            Case(
                "attention first, biases, tied, shared heads, rates up to 1",
                {
                    "layer_types": ["full_attention", "linear_attention", "full_attention"],
                    "attention_bias": True,
                    "tie_word_embeddings": True,
                    "linear_num_key_heads": 2,
                    "linear_num_value_heads": 4,
                    "linear_key_head_dim": 12,
                    "linear_value_head_dim": 16,
                    "linear_conv_kernel_dim": 3,
                    "linear_allow_neg_eigval": False,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                },
            ),
        ),
        class_name="OlmoHybridForCausalLM",
        sizes={**SIZES, **LINEAR, "head_dim": 8, "linear_num_key_heads": 4, "pad_token_id": 0},
        spread=0.2,
        published=("model.layers.1.linear_attn.q_conv1d.weight",),
    ),
    Family(
        "kimi_linear",
        (
            Case("plain", {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
            Case(
                "a section, groups, queries from a vector, biases, weights as they are",
                {
                    "linear_attn_config": {
                        "head_dim": 8,
                        "num_heads": 4,
                        "short_conv_kernel_size": 3,
                        "full_attn_layers": [1],
                        "kda_layers": [2, 3],
                    },
                    "num_expert_group": 2,
                    "topk_group": 1,
                    "moe_renormalize": False,
                    "num_shared_experts": 2,
                    "q_lora_rank": 32,
                    "attention_bias": True,
                },
            ),
        ),
        class_name="KimiLinearForCausalLM",
        sizes={
            **SIZES,
            "num_key_value_heads": 4,
            "kv_lora_rank": 32,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 16,
            "linear_head_dim": 16,
            "linear_num_heads": 2,
            "num_experts": 8,
            "num_experts_per_token": 2,
            "moe_intermediate_size": 32,
            "pad_token_id": 0,
        },
        spread=0.2,
        published=("model.layers.2.block_sparse_moe.experts.3.w1.weight", "model.layers.2.self_attn.q_conv1d.weight"),
    ),
)
