"""Experts chosen by scores that are corrected, and latent attention."""

from tests.families.family import SIZES, Case, Family

SCORED = {
    **SIZES,
    "moe_intermediate_size": 32,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 3,
    "first_k_dense_replace": 1,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 5000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "mscale": 0.8,
    "mscale_all_dim": 0.7,
}
LATENT = {
    **SCORED,
    "num_key_value_heads": 4,
    "q_lora_rank": 32,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
}

FAMILIES = (
    Family(
        "glm4_moe",
        (
            Case("plain"),
            Case(
                "groups, norms, biases, wide heads, two shared, tied",
                {
                    "n_group": 4,
                    "topk_group": 2,
                    "use_qk_norm": True,
                    "attention_bias": True,
                    "head_dim": 16,
                    "n_shared_experts": 2,
                    "norm_topk_prob": False,
                    "routed_scaling_factor": 1.7,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.25},
                },
            ),
        ),
        class_name="Glm4MoeForCausalLM",
        sizes=SCORED,
    ),
    Family(
        "dots1",
        (
            Case("plain"),
            Case(
                "groups, late layers slide, biases, normed weights",
                {
                    "n_group": 4,
                    "topk_group": 2,
                    "attention_bias": True,
                    "head_dim": 16,
                    "norm_topk_prob": True,
                    "routed_scaling_factor": 1.7,
                    "n_shared_experts": 2,
                    "sliding_window": 9,
                    "max_window_layers": 1,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                },
            ),
        ),
        class_name="Dots1ForCausalLM",
        sizes=SCORED,
    ),
    Family(
        "minimax_m2",
        (
            Case("rotary_dim", {"rotary_dim": 8}),
            Case(
                "tied, scaled rope, every head its own keys",
                {
                    "tie_word_embeddings": True,
                    "num_key_value_heads": 4,
                    "num_experts_per_tok": 1,
                    "rope_parameters": {**YARN, "partial_rotary_factor": 0.25},
                },
            ),
        ),
        class_name="MiniMaxM2ForCausalLM",
        sizes={**SIZES, "head_dim": 16, "num_local_experts": 6, "num_experts_per_tok": 2},
    ),
    Family(
        "bailing_moe",
        (
            Case("shares, a head of unit columns", {"norm_head": True, "first_k_dense_replace": 0}),
            Case(
                "corrected, groups, norms, biases, part of a head, tied",
                {
                    "score_function": "sigmoid",
                    "moe_router_enable_expert_bias": True,
                    "n_group": 4,
                    "topk_group": 3,
                    "routed_scaling_factor": 1.7,
                    "use_qk_norm": True,
                    "use_qkv_bias": True,
                    "partial_rotary_factor": 0.5,
                    "moe_shared_expert_intermediate_size": 64,
                    "num_shared_experts": 1,
                    "tie_word_embeddings": True,
                },
            ),
        ),
        peer="mlx_lm",
        sizes={
            **SIZES,
            "moe_intermediate_size": 32,
            "num_experts": 8,
            "num_shared_experts": 2,
            "num_experts_per_tok": 3,
            "norm_topk_prob": True,
            "first_k_dense_replace": 1,
            "rms_norm_eps": 1e-6,
            "rope_theta": 5000.0,
        },
        published=(
            "model.word_embeddings.weight",
            "model.layers.1.attention.query_key_value.weight",
            "model.layers.1.attention.dense.weight",
            "model.layers.1.mlp.experts.7.gate_proj.weight",
            "model.layers.1.mlp.shared_experts.up_proj.weight",
            "model.layers.1.mlp.gate.weight",
        ),
    ),
    Family(
        "deepseek_v2",
        (
            Case("best groups", {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2}),
            Case(
                "all compete, queries of the hidden state, biases, scaled rope, tied",
                {
                    "q_lora_rank": None,
                    "attention_bias": True,
                    "mlp_bias": True,
                    "v_head_dim": 24,
                    "first_k_dense_replace": 0,
                    "n_shared_experts": 2,
                    "routed_scaling_factor": 1.7,
                    "tie_word_embeddings": True,
                    "rope_parameters": YARN,
                },
            ),
        ),
        class_name="DeepseekV2ForCausalLM",
        sizes=LATENT,
    ),
    Family(
        "deepseek_v3",
        (
            Case("best groups, scaled rope", {"n_group": 4, "topk_group": 2, "rope_parameters": YARN}),
            Case(
                "queries of the hidden state, pairs far apart, biases, plain weights, tied",
                {
                    "q_lora_rank": None,
                    "attention_bias": True,
                    "rope_interleave": False,
                    "v_head_dim": 24,
                    "n_group": 1,
                    "topk_group": 1,
                    "norm_topk_prob": False,
                    "n_shared_experts": 2,
                    "tie_word_embeddings": True,
                },
            ),
        ),
        class_name="DeepseekV3ForCausalLM",
        quantized_in="hf",
        sizes=LATENT,
        older={"num_mtp_layers": "num_nextn_predict_layers"},
    ),
    Family(
        "kimi_k2",
        (
            Case("one group", {"n_group": 1, "topk_group": 1}),
            Case("scaled rope", {"n_group": 1, "topk_group": 1, "rope_parameters": YARN, "routed_scaling_factor": 2.8}),
        ),
        relaid="DeepseekV3ForCausalLM",
        quantized_in="hf",
        sizes=LATENT,
    ),
    Family(
        "deepseek_v32",
        (
            Case("few of the prompt"),
            Case(
                "more than the first tokens have, biases, scaled rope, a list of layers, tied",
                {
                    "index_topk": 11,
                    "index_head_dim": 32,
                    "attention_bias": True,
                    "n_group": 4,
                    "topk_group": 2,
                    "mlp_layer_types": ["sparse", "dense", "sparse"],
                    "tie_word_embeddings": True,
                    "rope_parameters": YARN,
                },
            ),
        ),
        class_name="DeepseekV32ForCausalLM",
        quantized_in="hf",
        sizes={**LATENT, "n_group": 1, "topk_group": 1, "index_topk": 5, "index_head_dim": 16, "index_n_heads": 16},
    ),
    Family(
        "glm4_moe_lite",
        (
            Case("all but the first have experts"),
            Case(
                "a list of layers, queries of the hidden state, groups, scaled rope, tied",
                {
                    "mlp_layer_types": ["sparse", "dense", "sparse"],
                    "q_lora_rank": None,
                    "v_head_dim": 24,
                    "n_group": 4,
                    "topk_group": 2,
                    "tie_word_embeddings": True,
                    "rope_parameters": YARN,
                },
            ),
        ),
        class_name="Glm4MoeLiteForCausalLM",
        quantized_in="hf",
        sizes={name: size for name, size in LATENT.items() if name != "first_k_dense_replace"},
    ),
    Family(
        "exaone_moe",
        (
            Case("the second layer is full", {"sliding_window_pattern": 2}),
            Case(
                "lists of layers, wide heads, groups, two shared, scaled rope, tied",
                {
                    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
                    "mlp_layer_types": ["sparse", "dense", "sparse"],
                    "head_dim": 16,
                    "n_group": 4,
                    "topk_group": 2,
                    "num_shared_experts": 2,
                    "norm_topk_prob": False,
                    "tie_word_embeddings": True,
                    "rope_parameters": YARN,
                },
            ),
        ),
        class_name="ExaoneMoeForCausalLM",
        sizes={
            **SIZES,
            "moe_intermediate_size": 32,
            "num_experts": 8,
            "num_shared_experts": 1,
            "num_experts_per_tok": 3,
            "sliding_window": 9,
        },
    ),
)
