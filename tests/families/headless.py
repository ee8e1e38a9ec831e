"""Decoders without their head: as embedders, and as classifiers by their last token."""

from tests.families.family import SIZES, Case, Family

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
ODD = {
    "qwen2": {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    "qwen3": {
        "head_dim": 16,
        "attention_bias": True,
        "use_sliding_window": True,
        "sliding_window": 9,
        "max_window_layers": 2,
    },
    "llama": {"head_dim": 16, "attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3},
    "mistral": {"head_dim": 16, "sliding_window": None},
}
CLASSES = {"qwen2": "Qwen2", "qwen3": "Qwen3", "llama": "Llama", "mistral": "Mistral"}

FAMILIES = (
    *(
        Family(
            model_type,
            (
                Case("plain", {"sliding_window": 9} if model_type == "mistral" else {}),
                Case("odd", ODD[model_type]),
                Case("both ways", {**ODD[model_type], "sliding_window": 5, "is_causal": False}),
            ),
            class_name=f"{name}Model",
            task="embed",
        )
        for model_type, name in CLASSES.items()
    ),
    *(
        Family(
            model_type,
            (
                Case("one label", {"num_labels": 1}),
                Case("three labels", {**ODD[model_type], "num_labels": 3}),
                Case("both ways", {"is_causal": False}),
            ),
            class_name=f"{name}ForSequenceClassification",
            sizes={**SIZES, "pad_token_id": 0},
            task="rerank",
        )
        for model_type, name in CLASSES.items()
    ),
)
