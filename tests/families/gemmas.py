"""The Gemmas, and the Coheres."""

from tests.families.family import SIZES, Case, Family

LINEAR = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0}
BY_TYPE = {"full_attention": LINEAR, "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}
SLIDING_THEN_FULL = ["sliding_attention", "full_attention"]
WIDE = {**SIZES, "head_dim": 16}

FAMILIES = (
    Family(
        "gemma",
        (
            Case("tied, wide heads"),
            Case(
                "untied, biases, linear rope, one head of keys",
                {
                    "tie_word_embeddings": False,
                    "attention_bias": True,
                    "rope_parameters": LINEAR,
                    "num_key_value_heads": 1,
                    "head_dim": 8,
                },
            ),
        ),
        class_name="GemmaForCausalLM",
        sizes=WIDE,
    ),
    Family(
        "gemma2",
        (
            Case("alternating windows, caps", {"sliding_window": 9, "attn_logit_softcapping": 3.0}),
            Case(
                "no caps, untied, biases, another scale",
                {
                    "sliding_window": 5,
                    "layer_types": ["full_attention", "full_attention", "sliding_attention"],
                    "attn_logit_softcapping": None,
                    "final_logit_softcapping": None,
                    "query_pre_attn_scalar": 24,
                    "tie_word_embeddings": False,
                    "attention_bias": True,
                },
            ),
        ),
        class_name="Gemma2ForCausalLM",
        sizes={**WIDE, "query_pre_attn_scalar": 16},
    ),
    Family(
        "gemma3_text",
        (
            Case("a base of sliding layers' own", {"sliding_window": 9, "sliding_window_pattern": 2}),
            Case(
                "linear rope where all is seen, a cap, untied, biases",
                {
                    "sliding_window": 5,
                    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
                    "rope_parameters": BY_TYPE,
                    "final_logit_softcapping": 2.0,
                    "query_pre_attn_scalar": 24,
                    "tie_word_embeddings": False,
                    "attention_bias": True,
                },
            ),
        ),
        class_name="Gemma3ForCausalLM",
        sizes={**WIDE, "query_pre_attn_scalar": 16},
    ),
    Family(
        "gemma3n_text",
        (
            Case("streams, shared keys and values", {"activation_sparsity_pattern": [0.9, 0.0, 0.0, 0.0, 0.0]}),
            Case(
                "another active stream, unscaled, sizes by layer, untied, no sharing",
                {
                    "num_hidden_layers": 3,
                    "layer_types": ["full_attention", "full_attention", "sliding_attention"],
                    "intermediate_size": [64, 32, 96],
                    "activation_sparsity_pattern": [0.0, 0.5, 0.3],
                    "altup_num_inputs": 3,
                    "altup_active_idx": 1,
                    "altup_correct_scale": False,
                    "num_kv_shared_layers": 0,
                    "tie_word_embeddings": False,
                    "attention_bias": True,
                    "rope_parameters": BY_TYPE,
                    "final_logit_softcapping": 2.0,
                },
            ),
        ),
        class_name="Gemma3nForCausalLM",
        sizes={
            **WIDE,
            "num_hidden_layers": 5,
            "layer_types": [*SLIDING_THEN_FULL, *SLIDING_THEN_FULL, "sliding_attention"],
            "sliding_window": 9,
            "num_kv_shared_layers": 2,
            "laurel_rank": 8,
            "vocab_size_per_layer_input": 48,
            "hidden_size_per_layer_input": 32,
        },
    ),
    Family(
        "gemma4_text",
        (
            Case(
                "inputs a layer, shared keys and values, wider borrowers",
                {
                    "num_hidden_layers": 5,
                    "layer_types": [*SLIDING_THEN_FULL, "sliding_attention", *SLIDING_THEN_FULL],
                    "num_kv_shared_layers": 2,
                    "use_double_wide_mlp": True,
                    "hidden_size_per_layer_input": 32,
                },
            ),
            Case(
                "experts, keys as values, untied, biases, a cap",
                {
                    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                    "attention_k_eq_v": True,
                    "num_global_key_value_heads": 1,
                    "enable_moe_block": True,
                    "num_experts": 4,
                    "top_k_experts": 2,
                    "moe_intermediate_size": 32,
                    "tie_word_embeddings": False,
                    "attention_bias": True,
                    "final_logit_softcapping": 2.0,
                    "rope_parameters": {
                        "full_attention": {
                            "rope_type": "proportional",
                            "rope_theta": 5000.0,
                            "partial_rotary_factor": 0.5,
                            "factor": 2.0,
                        },
                        "sliding_attention": {"rope_type": "linear", "rope_theta": 300.0, "factor": 4.0},
                    },
                },
            ),
        ),
        class_name="Gemma4ForCausalLM",
        sizes={
            **SIZES,
            "head_dim": 4,
            "global_head_dim": 16,
            "sliding_window": 9,
            "vocab_size_per_layer_input": 64,
            "hidden_size_per_layer_input": 0,
        },
    ),
    Family(
        "gemma4_unified_text",
        (
            Case(
                "shared keys and values",
                {
                    "num_hidden_layers": 5,
                    "layer_types": [*SLIDING_THEN_FULL, "sliding_attention", *SLIDING_THEN_FULL],
                    "num_kv_shared_layers": 2,
                    "use_double_wide_mlp": True,
                },
            ),
            Case(
                "keys as values, untied, biases",
                {
                    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                    "attention_k_eq_v": True,
                    "num_global_key_value_heads": 1,
                    "tie_word_embeddings": False,
                    "attention_bias": True,
                },
            ),
        ),
        class_name="Gemma4UnifiedForCausalLM",
        sizes={**SIZES, "head_dim": 4, "global_head_dim": 16, "sliding_window": 9},
    ),
    Family(
        "cohere",
        (
            Case("tied, scaled scores"),
            Case(
                "norms of heads, biases, untied, linear rope",
                {
                    "use_qk_norm": True,
                    "attention_bias": True,
                    "tie_word_embeddings": False,
                    "rope_parameters": LINEAR,
                    "logit_scale": 0.5,
                    "layer_norm_eps": 1e-3,
                },
            ),
        ),
        class_name="CohereForCausalLM",
    ),
    Family(
        "cohere2",
        (
            Case("three of four slide", {"num_hidden_layers": 4, "sliding_window": 9}),
            Case(
                "biases, untied",
                {
                    "sliding_window": 5,
                    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
                    "attention_bias": True,
                    "tie_word_embeddings": False,
                    "logit_scale": 1.0,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
                },
            ),
        ),
        class_name="Cohere2ForCausalLM",
    ),
)
