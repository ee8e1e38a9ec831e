"""Families whose layers keep a state of one size: Mamba, Mamba 2, and what mixes them with attention."""

from tests.families.family import SIZES, Case, Family

MAMBA = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 3, "state_size": 8, "expand": 2}
# Powers of 2: what mlx-lm has multiplied in comes out again to the bit.
MULTIPLIERS = {
    "lm_head_multiplier": 0.5,
    "embedding_multiplier": 2.0,
    "mlp_multipliers": [2.0, 0.25],
    "key_multiplier": 0.5,
    "attention_in_multiplier": 2.0,
    "attention_out_multiplier": 0.25,
    "ssm_multipliers": [0.5, 2.0, 0.25, 4.0, 0.125],
    "ssm_in_multiplier": 2.0,
    "ssm_out_multiplier": 0.5,
}

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
    Family(
        "falcon_h1",
        (
            Case("multipliers, two groups", {"mamba_n_groups": 2}),
            Case(
                "norm before the gate, biases, wide heads, tied",
                {
                    "mamba_rms_norm": True,
                    "mamba_n_groups": 2,
                    "mamba_d_ssm": 64,
                    "mamba_d_head": 8,
                    "mamba_n_heads": 8,
                    "mamba_conv_bias": False,
                    "mamba_proj_bias": True,
                    "projectors_bias": True,
                    "attention_bias": True,
                    "mlp_bias": True,
                    "head_dim": 16,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 1e11},
                    "time_step_limit": [0.4, 1.1],
                },
            ),
            Case("norm after the gate", {"mamba_rms_norm": True, "mamba_norm_before_gate": False, "mamba_n_groups": 4}),
        ),
        class_name="FalconH1ForCausalLM",
        sizes={**SIZES, **MULTIPLIERS, "mamba_d_ssm": 96, "mamba_n_heads": 4, "mamba_d_state": 8},
    ),
    Family(
        "granitemoehybrid",
        (
            Case("experts, no positions", {"layer_types": ["mamba", "attention", "mamba"]}),
            Case(
                "rope, biases, four groups, tied",
                {
                    "layer_types": ["full_attention", "linear_attention", "full_attention"],
                    "position_embedding_type": "rope",
                    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
                    "num_experts_per_tok": 3,
                    "attention_bias": True,
                    "mamba_n_groups": 4,
                    "mamba_d_head": 24,
                    "mamba_expand": 3,
                    "mamba_conv_bias": False,
                    "mamba_proj_bias": True,
                    "tie_word_embeddings": True,
                    "time_step_limit": [0.4, 1.1],
                },
            ),
            Case("no experts", {"num_local_experts": 0, "layer_types": ["mamba", "mamba", "attention"]}),
        ),
        class_name="GraniteMoeHybridForCausalLM",
        sizes={
            **SIZES,
            "shared_intermediate_size": 96,
            "num_local_experts": 4,
            "embedding_multiplier": 3.0,
            "logits_scaling": 1.7,
            "residual_multiplier": 0.6,
            "attention_multiplier": 0.2,
            "mamba_n_heads": 4,
            "mamba_d_state": 8,
        },
    ),
    Family(
        "plamo2",
        (
            Case("tied"),
            Case(
                "full attention, one layer of three, a head of its own",
                {
                    "num_hidden_layers": 4,
                    "mamba_step": 3,
                    "attention_window_size": 9,
                    "full_attention_idx": [1],
                    "tie_word_embeddings": False,
                    "hidden_size_per_head": 16,
                    "mamba_d_conv": 3,
                },
            ),
        ),
        peer="mlx_lm",
        sizes={
            **SIZES,
            "rms_norm_eps": 1e-6,
            "hidden_size_per_head": 8,
            "mamba_d_state": 8,
            "mamba_num_heads": 4,
            "tie_word_embeddings": True,
        },
        published=("model.layers.layers.1.mixer.qkv_proj.weight", "model.layers.layers.0.mixer.bcdt_proj.weight"),
    ),
)
