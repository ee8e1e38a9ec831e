"""Tiny configs of the text architectures, as config.json's content."""

from typing import Any

SIZES: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**SIZES, "model_type": "llama"},
    "mistral": {**SIZES, "model_type": "mistral", "sliding_window": 5},
    "mixtral": {**SIZES, "model_type": "mixtral", "num_local_experts": 4},
    "qwen3_moe": {**SIZES, **EXPERTS, "model_type": "qwen3_moe", "head_dim": 16, "mlp_only_layers": [1]},
}
