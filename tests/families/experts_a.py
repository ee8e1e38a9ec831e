"""Families whose experts are chosen by softmax, and others."""

from tests.families.family import SIZES, Case, Family

EXPERTS = {**SIZES, "num_experts": 4, "num_experts_per_tok": 2}
LOCAL_EXPERTS = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}
MULTIPLIERS = {
    "embedding_multiplier": 3.0,
    "logits_scaling": 6.0,
    "residual_multiplier": 0.3,
    "attention_multiplier": 0.1,
}

FAMILIES = (
    Family(
        "qwen2_moe",
        (
            Case("a dense layer, every other layer slides", {"mlp_only_layers": [1], "use_sliding_window": True}),
            Case(
                "normed weights, no biases, tied",
                {"norm_topk_prob": True, "qkv_bias": False, "decoder_sparse_step": 2, "tie_word_embeddings": True},
            ),
        ),
        class_name="Qwen2MoeForCausalLM",
        sizes={
            **EXPERTS,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 96,
            "sliding_window": 9,
        },
    ),
    Family(
        "olmoe",
        (
            Case("clipped", {"clip_qkv": 0.7}),
            Case(
                "normed weights, biases, no shared heads, tied",
                {
                    "norm_topk_prob": True,
                    "attention_bias": True,
                    "num_key_value_heads": None,
                    "tie_word_embeddings": True,
                },
            ),
        ),
        class_name="OlmoeForCausalLM",
        sizes=EXPERTS,
        older={"num_local_experts": "num_experts"},
        published=("model.layers.0.mlp.experts.3.gate_proj.weight",),
    ),
    Family(
        "granitemoe",
        (
            Case("multipliers", MULTIPLIERS),
            Case("biases, wide heads, tied", {"attention_bias": True, "head_dim": 16, "tie_word_embeddings": True}),
        ),
        class_name="GraniteMoeForCausalLM",
        sizes=LOCAL_EXPERTS,
        published=("model.layers.2.block_sparse_moe.input_linear.weight",),
    ),
    Family(
        "granitemoeshared",
        (
            Case("a shared layer", {"shared_intermediate_size": 48, **MULTIPLIERS}),
            Case("none", {"num_experts_per_tok": 3, "tie_word_embeddings": True}),
        ),
        class_name="GraniteMoeSharedForCausalLM",
        sizes=LOCAL_EXPERTS,
        published=("model.layers.2.block_sparse_moe.output_linear.weight",),
        kit=2,
    ),
    Family(
        "gpt_oss",
        (
            Case("windows, yarn that is not rounded", {"swiglu_limit": 1.0}),
            Case(
                "full first, no biases, plain rope",
                {
                    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                    "attention_bias": False,
                    "num_experts_per_tok": 3,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                    "tie_word_embeddings": True,
                },
            ),
        ),
        class_name="GptOssForCausalLM",
        sizes={
            **LOCAL_EXPERTS,
            "head_dim": 16,
            "sliding_window": 9,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 150000.0,
                "factor": 4.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 16,
            },
        },
    ),
    Family(
        "hunyuan_v1_moe",
        (
            Case("two of four, a fixed base", {}),
            Case(
                "another number a layer, biases, wide heads, tied",
                {
                    "moe_topk": [1, 3, 2],
                    "attention_bias": True,
                    "head_dim": 16,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                },
            ),
        ),
        class_name="HunYuanMoEV1ForCausalLM",
        sizes={
            **SIZES,
            "num_experts": 4,
            "moe_topk": 2,
            "head_dim": 8,
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 1.0, "alpha": 1000.0},
        },
        older={"num_local_experts": "num_experts", "num_experts_per_tok": "moe_topk"},
    ),
    Family(
        "ernie4_5_moe",
        (
            Case("a dense layer first", {}),
            Case(
                "biases, every other layer, no shared experts",
                {
                    "use_bias": True,
                    "tie_word_embeddings": False,
                    "moe_num_shared_experts": 0,
                    "moe_layer_start_index": 0,
                    "moe_layer_interval": 2,
                    "num_hidden_layers": 4,
                    "moe_layer_end_index": 2,
                    "head_dim": 16,
                },
            ),
        ),
        class_name="Ernie4_5_MoeForCausalLM",
        sizes={**SIZES, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32},
        older={"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"},
        published=("model.layers.1.mlp.moe_statics.e_score_correction_bias",),
        kit=2,
    ),
    Family(
        "minimax",
        (
            Case(
                "in turn, factors",
                {
                    "full_attn_alpha_factor": 1.5,
                    "full_attn_beta_factor": 0.7,
                    "linear_attn_alpha_factor": 1.2,
                    "linear_attn_beta_factor": 0.8,
                    "mlp_alpha_factor": 1.1,
                    "mlp_beta_factor": 0.9,
                },
            ),
            Case(
                "lightning first, a window, wide heads, tied",
                {
                    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
                    "sliding_window": 9,
                    "head_dim": 16,
                    "block_size": 8,
                    "tie_word_embeddings": True,
                },
            ),
        ),
        class_name="MiniMaxForCausalLM",
        sizes=LOCAL_EXPERTS,
        computed=("slope_rate", "query_decay", "key_decay", "diagonal_decay"),
        published=("model.layers.0.block_sparse_moe.experts.3.w1.weight",),
    ),
    Family(
        "phimoe",
        (
            Case("a window", {"sliding_window": 9}),
            Case(
                "biases, near experts, LongRoPE",
                {
                    "attention_bias": True,
                    "lm_head_bias": True,
                    "router_jitter_noise": 0.3,
                    "rope_parameters": {
                        "rope_type": "longrope",
                        "rope_theta": 10000.0,
                        "short_factor": [1.0, 1.1, 1.3, 1.7],
                        "long_factor": [1.0, 2.0, 4.0, 8.0],
                        "short_mscale": 1.2,
                        "long_mscale": 1.2,
                        "original_max_position_embeddings": 32,
                    },
                },
            ),
        ),
        class_name="PhimoeForCausalLM",
        sizes=LOCAL_EXPERTS,
        published=("model.layers.0.block_sparse_moe.experts.3.w2.weight",),
    ),
    Family(
        "llama4_text",
        (
            Case("chunks, one layer that does not turn, dense ones", {"moe_layers": [1, 3]}),
            Case(
                "two experts, no norms, biases, other layers turn, tied",
                {
                    "num_experts_per_tok": 2,
                    "use_qk_norm": False,
                    "attention_bias": True,
                    "interleave_moe_layer_step": 2,
                    "no_rope_layers": [0, 1, 1, 0],
                    "attn_temperature_tuning": False,
                    "tie_word_embeddings": True,
                    "rope_parameters": {
                        "rope_type": "llama3",
                        "rope_theta": 5000.0,
                        "factor": 8.0,
                        "low_freq_factor": 1.0,
                        "high_freq_factor": 4.0,
                        "original_max_position_embeddings": 16,
                    },
                },
            ),
        ),
        class_name="Llama4ForCausalLM",
        sizes={
            **LOCAL_EXPERTS,
            "num_hidden_layers": 4,
            "num_experts_per_tok": 1,
            "intermediate_size_mlp": 96,
            "head_dim": 16,
            "attention_chunk_size": 9,
            "floor_scale": 4,
        },
    ),
)
