"""Families whose layers keep a state of one size: Mamba, Mamba 2, and what mixes them with attention."""

from tests.families.family import SIZES, Case, Family

MAMBA = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 3, "state_size": 8, "expand": 2}

FAMILIES = (
    Family(
        "mamba",
        (
            Case("plain"),
            Case(
                "biases, a head of its own, narrow residuals",
                {
                    "use_bias": True,
                    "use_conv_bias": False,
                    "tie_word_embeddings": False,
                    "residual_in_fp32": False,
                    "time_step_rank": 5,
                    "conv_kernel": 3,
                    "hidden_act": "gelu",
                },
            ),
        ),
        class_name="MambaForCausalLM",
        sizes=MAMBA,
    ),
    Family(
        "falcon_mamba",
        (
            Case("plain"),
            Case(
                "biases, a size that expand does not say",
                {
                    "use_bias": True,
                    "use_conv_bias": False,
                    "tie_word_embeddings": False,
                    "expand": 16,
                    "intermediate_size": 96,
                    "mixer_rms_eps": 1e-3,
                },
            ),
        ),
        class_name="FalconMambaForCausalLM",
        sizes=MAMBA,
    ),
    Family(
        "mamba2",
        (
            Case("two groups", {"n_groups": 2}),
            Case(
                "biases, four groups, limits, tied",
                {
                    "n_groups": 4,
                    "num_heads": 4,
                    "head_dim": 24,
                    "expand": 3,
                    "use_bias": True,
                    "use_conv_bias": False,
                    "tie_word_embeddings": True,
                    "residual_in_fp32": False,
                    "time_step_limit": [0.4, 1.1],
                    "chunk_size": 8,
                },
            ),
        ),
        class_name="Mamba2ForCausalLM",
        sizes={**MAMBA, "num_heads": 8, "head_dim": 8},
    ),
    Family(
        "jamba",
        (
            Case("attention in the middle"),
            Case(
                "biases, tied, three of four, an attention layer first",
                {
                    "attn_layer_period": 3,
                    "attn_layer_offset": 0,
                    "expert_layer_period": 3,
                    "expert_layer_offset": 2,
                    "num_experts_per_tok": 3,
                    "mamba_proj_bias": True,
                    "mamba_conv_bias": False,
                    "mamba_dt_rank": 5,
                    "mamba_expand": 3,
                    "mamba_d_conv": 3,
                    "tie_word_embeddings": True,
                    "rms_norm_eps": 1e-3,
                },
            ),
        ),
        class_name="JambaForCausalLM",
        sizes={
            **SIZES,
            "attn_layer_period": 3,
            "attn_layer_offset": 1,
            "num_experts": 4,
            "mamba_d_state": 8,
        },
    ),
)
