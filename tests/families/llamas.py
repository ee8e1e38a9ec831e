"""Llama and what is a Llama with other defaults."""

from tests.families.family import SIZES, Case, Family

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 5000.0}
ROPES = {
    "default": {"rope_type": "default", "rope_theta": 5000.0},
    "linear": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 5000.0},
    "yarn": YARN,
    "yarn, untruncated": {**YARN, "truncate": False, "beta_fast": 8.0},
    "yarn, attention factor": {**YARN, "attention_factor": 1.3},
    "yarn, mscale": {**YARN, "mscale": 1.2, "mscale_all_dim": 0.7},
}
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
# About the chunks in which the kit asks (7), and the length of its prompt (24).
WINDOWS = (1, 5, 7, 8, 13, 23, 24, 32)

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
            Case("every head its own keys, biases", {"num_key_value_heads": None, "attention_bias": True}),
            *(Case(f"rope: {kind}", {"rope_parameters": rope}) for kind, rope in ROPES.items()),
            *(Case(act, {"hidden_act": act}) for act in ACTIVATIONS),
        ),
        class_name="LlamaForCausalLM",
        published=("model.layers.2.self_attn.q_proj.weight", "model.embed_tokens.weight"),
    ),
    Family(
        "mistral",
        (
            Case("sliding", {"sliding_window": 9}),
            Case("no window, wide heads", {"sliding_window": None, "head_dim": 16}),
            *(Case(f"a window of {width}", {"sliding_window": width}) for width in WINDOWS),
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
        published=("model.layers.0.block_sparse_moe.experts.3.w2.weight",),
    ),
    Family(
        "qwen3_moe",
        (
            Case("a dense layer, sliding", {"mlp_only_layers": [0], "use_sliding_window": True, "sliding_window": 9}),
            Case("normed weights, biases", {"norm_topk_prob": True, "attention_bias": True, "decoder_sparse_step": 2}),
        ),
        class_name="Qwen3MoeForCausalLM",
        published=("model.layers.1.mlp.experts.3.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"),
        sizes={**SIZES, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16},
        older={"num_local_experts": "num_experts"},
    ),
)
