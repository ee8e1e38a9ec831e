"""Dense decoders: Qwen, Seed-OSS, InternLM, EXAONE and others that differ from Llama in a few steps."""

from tests.families.family import WITHOUT_SHARED_HEADS, Case, Family

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}

YARN = {
    "rope_type": "yarn",
    "rope_theta": 5000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 8,
    "mscale": 1.0,
    "mscale_all_dim": 0.5,
}

LONG = {"rope_type": "longrope", "rope_theta": 500.0, "short_factor": [1.5, 2.0], "long_factor": [3.0, 7.0]}

FAMILIES = (
    Family(
        "qwen2",
        (
            Case("the last layer slides", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2}),
            Case("wide heads, tied, theta", {"head_dim": 16, "tie_word_embeddings": True, "rope_parameters": LLAMA3}),
        ),
        class_name="Qwen2ForCausalLM",
    ),
    Family(
        "qwen3",
        (
            Case("wide heads", {"head_dim": 16}),
            Case(
                "sliding as listed, biases, tied",
                {
                    "head_dim": 8,
                    "attention_bias": True,
                    "tie_word_embeddings": True,
                    "use_sliding_window": True,
                    "sliding_window": 5,
                    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                },
            ),
        ),
        class_name="Qwen3ForCausalLM",
    ),
    Family(
        "seed_oss",
        (
            Case("wide heads", {"head_dim": 16}),
            Case(
                "other biases, tied",
                {
                    "head_dim": 8,
                    "attention_bias": False,
                    "attention_out_bias": True,
                    "mlp_bias": True,
                    "tie_word_embeddings": True,
                },
            ),
        ),
        class_name="SeedOssForCausalLM",
    ),
    Family(
        "internlm3",
        (
            Case("wide heads", {"head_dim": 16, "rope_parameters": {"rope_type": "default", "rope_theta": 5e6}}),
            Case(
                "biases, dynamic",
                {
                    "attention_bias": True,
                    "mlp_bias": True,
                    "head_dim": 8,
                    "rope_parameters": {"rope_type": "dynamic", "rope_theta": 5000.0, "factor": 6.0},
                },
            ),
        ),
        class_name="LlamaForCausalLM",
        older={"attention_bias": "qkv_bias", "mlp_bias": "bias"},
    ),
    Family(
        "exaone",
        (
            Case("plain"),
            Case(
                "llama3, biases, tied, head size",
                {
                    "rope_parameters": LLAMA3,
                    "attention_bias": True,
                    "head_dim": 16,
                    "tie_word_embeddings": True,
                    "mlp_bias": True,
                },
            ),
        ),
        class_name="LlamaForCausalLM",
        older={
            "num_hidden_layers": "num_layers",
            "rms_norm_eps": "layer_norm_epsilon",
            "hidden_act": "activation_function",
        },
        published=("transformer.h.0.attn.attention.out_proj.weight",),
    ),
    Family(
        "ministral3",
        (
            Case("growing", {"head_dim": 16, "rope_parameters": {**YARN, "llama_4_scaling_beta": 0.7}}),
            Case(
                "sliding, published rope, tied",
                {"head_dim": 8, "sliding_window": 9, "tie_word_embeddings": True},
            ),
        ),
        class_name="Ministral3ForCausalLM",
    ),
    Family(
        "smollm3",
        (
            Case("every second layer does not turn", {"no_rope_layer_interval": 2, "pad_token_id": None}),
            Case(
                "listed, sliding, biases, a head of its own",
                {
                    "pad_token_id": None,
                    "no_rope_layers": [0, 1, 0],
                    "use_sliding_window": True,
                    "sliding_window": 9,
                    "attention_bias": True,
                    "mlp_bias": True,
                    "tie_word_embeddings": False,
                },
            ),
        ),
        class_name="SmolLM3ForCausalLM",
    ),
    Family(
        "phi3",
        (
            Case("sliding", {"sliding_window": 9, "pad_token_id": None}),
            Case(
                "always long, partial, tied",
                {
                    "pad_token_id": None,
                    "tie_word_embeddings": True,
                    "original_max_position_embeddings": 6,
                    "rope_parameters": {**LONG, "partial_rotary_factor": 0.5},
                },
            ),
            Case(
                "always short",
                {
                    "pad_token_id": None,
                    "original_max_position_embeddings": 32,
                    "rope_parameters": {**LONG, "partial_rotary_factor": 0.5},
                },
            ),
        ),
        class_name="Phi3ForCausalLM",
    ),
    Family(
        "phi",
        (
            Case("plain"),
            Case(
                "norms on heads, tied, another part turns",
                {
                    "qk_layernorm": True,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5e3, "partial_rotary_factor": 0.25},
                },
            ),
        ),
        class_name="PhiForCausalLM",
    ),
    Family(
        "stablelm",
        (
            Case("plain", {"hidden_size": 64}),
            Case(
                "parallel, norms on heads, biases, tied",
                {
                    "use_parallel_residual": True,
                    "qk_layernorm": True,
                    "use_qkv_bias": True,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5e3, "partial_rotary_factor": 0.5},
                },
            ),
        ),
        class_name="StableLmForCausalLM",
    ),
    Family(
        "starcoder2",
        (
            Case("sliding", {"sliding_window": 9}),
            Case("no biases, a head of its own", {"use_bias": False, "tie_word_embeddings": False}),
        ),
        class_name="Starcoder2ForCausalLM",
    ),
    Family(
        "gpt2",
        (
            Case("plain"),
            Case(
                "scales by layer, another width",
                {
                    "n_inner": 64,
                    "scale_attn_by_inverse_layer_idx": True,
                    "scale_attn_weights": False,
                    "activation_function": "gelu",
                },
            ),
        ),
        class_name="GPT2LMHeadModel",
        sizes={"vocab_size": 64, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64},
    ),
    Family(
        "gpt_neox",
        (
            Case("plain", {"hidden_size": 64}),
            Case(
                "one after the other, no biases, tied",
                {
                    "use_parallel_residual": False,
                    "attention_bias": False,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5e3, "partial_rotary_factor": 0.5},
                },
            ),
        ),
        class_name="GPTNeoXForCausalLM",
        sizes=WITHOUT_SHARED_HEADS,
        older={"partial_rotary_factor": "rotary_pct", "rope_theta": "rotary_emb_base"},
        published=("gpt_neox.embed_in.weight",),
    ),
)
