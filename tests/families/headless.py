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
    "gemma2": {"head_dim": 16, "sliding_window": 9, "query_pre_attn_scalar": 8, "attn_logit_softcapping": None},
}
CLASSES = {"qwen2": "Qwen2", "qwen3": "Qwen3", "llama": "Llama", "mistral": "Mistral", "gemma2": "Gemma2"}
GEMMA3 = {**SIZES, "head_dim": 16, "query_pre_attn_scalar": 16, "pad_token_id": 0}
PATTERN = {"sliding_window": 9, "sliding_window_pattern": 2}
ROPES = {
    "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
}
LISTED = {
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
    "rope_parameters": ROPES,
    "attention_bias": True,
    "query_pre_attn_scalar": 24,
}

FAMILIES = (
    Family(
        "gemma3_text",
        (
            Case("both ways, half a window to either side", {**PATTERN, "use_bidirectional_attention": True}),
            Case("listed layers, both ways", {**LISTED, "use_bidirectional_attention": True, "sliding_window": 6}),
            Case("causal", {**LISTED, "sliding_window": 5}),
            Case("both ways by the other flag", {**PATTERN, "is_causal": False}),
        ),
        class_name="Gemma3TextModel",
        sizes=GEMMA3,
        task="embed",
    ),
    Family(
        "gemma3_text",
        (
            Case("one label", {**PATTERN, "num_labels": 1}),
            Case("three labels, listed layers", {**LISTED, "num_labels": 3, "sliding_window": 5}),
        ),
        class_name="Gemma3TextForSequenceClassification",
        sizes=GEMMA3,
        task="rerank",
    ),
    *(
        Family(
            model_type,
            (
                Case("plain", {"sliding_window": 9} if model_type == "mistral" else {}),
                Case("odd", ODD[model_type]),
                Case("both ways", {**ODD[model_type], "sliding_window": 5, "is_causal": False}),
            ),
            class_name=f"{name}Model",
            sizes=SIZES if model_type != "gemma2" else {**SIZES, "head_dim": 8},
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
            sizes={**SIZES, "pad_token_id": 0, **({"head_dim": 8} if model_type == "gemma2" else {})},
            task="rerank",
        )
        for model_type, name in CLASSES.items()
    ),
)
