"""Llama and what is a Llama with other defaults."""

from tests.families.family import SIZES, Case, Family

LAYER_TYPES = ["sliding_attention", "full_attention", "sliding_attention"]

FAMILIES = (
    Family(
        "llama",
        (
            Case("plain"),
            Case(
                "biases, llama3, wide heads, tied",
                {
                    "attention_bias": True,
                    "mlp_bias": True,
                    "head_dim": 16,
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
        class_name="LlamaForCausalLM",
    ),
    Family(
        "mistral",
        (
            Case("sliding", {"sliding_window": 9}),
            Case("no window, wide heads", {"sliding_window": None, "head_dim": 16}),
        ),
        class_name="MistralForCausalLM",
    ),
    Family(
        "mixtral",
        (
            Case("sliding", {"sliding_window": 9, "num_local_experts": 4}),
            Case("three of four", {"num_local_experts": 4, "num_experts_per_tok": 3, "tie_word_embeddings": True}),
        ),
        class_name="MixtralForCausalLM",
    ),
    Family(
        "qwen3_moe",
        (
            Case("a dense layer, sliding", {"mlp_only_layers": [1], "use_sliding_window": True, "sliding_window": 9}),
            Case("normed weights, biases", {"norm_topk_prob": True, "attention_bias": True, "decoder_sparse_step": 2}),
        ),
        class_name="Qwen3MoeForCausalLM",
        sizes={**SIZES, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16},
        older={"num_local_experts": "num_experts"},
    ),
)
