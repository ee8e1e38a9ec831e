"""Families whose layers, or most of them, keep a state of fixed size."""

from tests.families.family import SIZES, Case, Family

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
)
