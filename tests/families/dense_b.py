"""Dense decoders whose layers differ from Llama's in one way or another, and Llama's under other names."""

from typing import Any

from tests.families.family import SIZES, WITHOUT_SHARED_HEADS, Case, Family

LAYER_TYPES = ["sliding_attention", "full_attention", "sliding_attention"]
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
# The published ids of padding lie beyond so few tokens.
UNPADDED = {**SIZES, "pad_token_id": None}

NONE, LINEAR = {"no_op": True}, {"replace_with_linear": True}


def _block(attention: int | dict[str, bool], ffn: float | dict[str, bool]) -> dict[str, Any]:
    """Give a block of so many heads in a group, and so wide; or of less."""
    return {
        "attention": {"n_heads_in_group": attention} if isinstance(attention, int) else attention,
        "ffn": {"ffn_mult": ffn} if isinstance(ffn, float) else ffn,
    }


FAMILIES = (
    Family(
        "glm",
        (
            Case("half turns", {"head_dim": 8}),
            Case("no biases, tied", {"head_dim": 16, "attention_bias": False, "tie_word_embeddings": True}),
        ),
        class_name="GlmForCausalLM",
        sizes=UNPADDED,
    ),
    Family(
        "glm4",
        (
            Case("half turns, wide heads", {"head_dim": 16}),
            Case(
                "a quarter turns, no biases, tied",
                {
                    "head_dim": 8,
                    "attention_bias": False,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.25},
                },
            ),
        ),
        class_name="Glm4ForCausalLM",
        sizes=UNPADDED,
    ),
    Family(
        "exaone4",
        (
            Case("hybrid, llama3", {"sliding_window": 9, "layer_types": LAYER_TYPES, "rope_parameters": LLAMA3}),
            Case(
                "no window, tied",
                {"sliding_window": None, "layer_types": ["full_attention"] * 3, "tie_word_embeddings": True},
            ),
            Case("by pattern", {"sliding_window": 9, "sliding_window_pattern": 2}),
        ),
        class_name="Exaone4ForCausalLM",
    ),
    Family(
        "ernie4_5",
        (
            Case("tied, wide heads", {"head_dim": 16}),
            Case("biases", {"use_bias": True, "tie_word_embeddings": False, "head_dim": None}),
        ),
        class_name="Ernie4_5ForCausalLM",
    ),
    Family(
        "hunyuan_v1_dense",
        (
            Case(
                "alpha",
                {
                    "head_dim": 16,
                    "rope_parameters": {"rope_type": "dynamic", "rope_theta": 500.0, "alpha": 1000.0, "factor": 1.0},
                },
            ),
            Case(
                "linear, biases, tied",
                {
                    "head_dim": 8,
                    "attention_bias": True,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0},
                },
            ),
        ),
        class_name="HunYuanDenseV1ForCausalLM",
    ),
    Family(
        "olmo2",
        (
            Case("plain"),
            Case("biases, tied", {"attention_bias": True, "tie_word_embeddings": True, "rope_parameters": LLAMA3}),
        ),
        class_name="Olmo2ForCausalLM",
        sizes={**SIZES, "num_key_value_heads": 2},
    ),
    Family(
        "olmo3",
        (
            Case("windows by pattern", {"sliding_window": 9, "num_hidden_layers": 4}),
            Case(
                "windows as listed, yarn, tied",
                {
                    "sliding_window": 7,
                    "layer_types": LAYER_TYPES,
                    "tie_word_embeddings": True,
                    "rope_parameters": {
                        "full_attention": {
                            "rope_type": "yarn",
                            "rope_theta": 5000.0,
                            "factor": 4.0,
                            "original_max_position_embeddings": 16,
                        },
                        "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
                    },
                },
            ),
        ),
        class_name="Olmo3ForCausalLM",
    ),
    Family(
        "granite",
        (
            Case(
                "multipliers",
                {
                    "embedding_multiplier": 3.0,
                    "attention_multiplier": 0.2,
                    "residual_multiplier": 0.4,
                    "logits_scaling": 2.5,
                },
            ),
            Case(
                "biases, wide heads, tied",
                {
                    "attention_bias": True,
                    "mlp_bias": True,
                    "head_dim": 16,
                    "tie_word_embeddings": True,
                    "logits_scaling": 0.5,
                    "rope_parameters": LLAMA3,
                },
            ),
        ),
        class_name="GraniteForCausalLM",
    ),
    Family(
        "minicpm",
        (
            Case("tied by default", {"scale_emb": 3, "scale_depth": 1.4, "dim_model_base": 16, "rope_theta": 5000.0}),
            Case(
                "a head of its own",
                {"scale_emb": 12, "scale_depth": 0.7, "dim_model_base": 8, "tie_word_embeddings": False},
            ),
        ),
        relaid="GraniteForCausalLM",
    ),
    Family(
        "nemotron",
        (
            Case("half turns"),
            Case(
                "a quarter turns, biases, wide heads, tied",
                {
                    "attention_bias": True,
                    "mlp_bias": True,
                    "head_dim": 16,
                    "norm_eps": 1e-3,
                    "tie_word_embeddings": True,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.25},
                },
            ),
        ),
        class_name="NemotronForCausalLM",
        spread=0.2,
    ),
    Family(
        "apertus",
        (
            Case("the published rope"),
            Case("biases, tied", {"attention_bias": True, "tie_word_embeddings": True, "rope_parameters": LLAMA3}),
        ),
        class_name="ApertusForCausalLM",
        sizes=UNPADDED,
        spread=0.2,
    ),
    Family(
        "internlm2",
        (
            Case("biases", {"rope_theta": 5000.0}),
            Case(
                "no biases, one head of keys, tied",
                {"bias": False, "num_key_value_heads": 1, "tie_word_embeddings": True},
            ),
        ),
        relaid="LlamaForCausalLM",
        published=("model.layers.1.attention.wqkv.weight", "model.tok_embeddings.weight"),
    ),
    Family(
        "baichuan",
        (
            Case("plain", {"rope_theta": 5000.0}),
            Case("a normed head", {"norm_head": True}),
        ),
        relaid="LlamaForCausalLM",
        sizes=WITHOUT_SHARED_HEADS,
    ),
    Family(
        "nemotron-nas",
        (
            Case(
                "each layer its own heads",
                {
                    "rope_theta": 5000.0,
                    "rope_scaling": {name: value for name, value in LLAMA3.items() if name != "rope_theta"},
                    "block_configs": [_block(2, 1.0), _block(4, 20.0), _block(1, 0.5)],
                },
            ),
            Case(
                "none, or one matrix, tied",
                {
                    "num_hidden_layers": 6,
                    "tie_word_embeddings": True,
                    "rope_theta": 5000.0,
                    "block_configs": [
                        _block(NONE, 1.0),
                        _block(2, NONE),
                        _block(LINEAR, 1.0),
                        _block(4, LINEAR),
                        _block(NONE, LINEAR),
                        _block(1, 0.5),
                    ],
                },
            ),
        ),
        class_name="DeciLMForCausalLM",
        peer="mlx_lm",
        sizes=WITHOUT_SHARED_HEADS,
        spread=0.2,
    ),
    Family(
        "minicpm3",
        (
            Case(
                "longrope, tied",
                {
                    "num_key_value_heads": 4,
                    "tie_word_embeddings": True,
                    "rope_parameters": {
                        "rope_type": "longrope",
                        "rope_theta": 5000.0,
                        "short_factor": [1.0, 1.5, 2.0, 3.0],
                        "long_factor": [1.0, 2.0, 4.0, 8.0],
                        "original_max_position_embeddings": 64,
                    },
                },
            ),
            Case(
                "queries as they are, biases, a head of its own",
                {
                    "num_key_value_heads": 4,
                    "q_lora_rank": None,
                    "attention_bias": True,
                    "tie_word_embeddings": False,
                    "v_head_dim": 16,
                    "scale_depth": None,
                    "dim_model_base": None,
                },
            ),
        ),
        class_name="MiniCPM3ForCausalLM",
        sizes={
            **SIZES,
            "kv_lora_rank": 32,
            "q_lora_rank": 32,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "scale_emb": 3,
            "dim_model_base": 16,
        },
    ),
)
