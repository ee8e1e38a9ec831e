"""Encoders, and the classifiers that are made of them."""

from typing import Any

from tests.families.family import SIZES, WITHOUT_SHARED_HEADS, Case, Family

BERT: dict[str, Any] = {**WITHOUT_SHARED_HEADS, "hidden_act": "gelu"}
ODD = {"hidden_act": "relu", "layer_norm_eps": 1e-3, "num_attention_heads": 2, "type_vocab_size": 1}

SLIDING = {**WITHOUT_SHARED_HEADS, "num_hidden_layers": 4, "local_attention": 8, "pad_token_id": 0}
OLDER = {"rope_theta": "global_rope_theta", "rope_local_base_freq": "local_rope_theta"}
GLOBAL = {
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0},
        "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
    },
    "local_attention": 5,
    "norm_bias": True,
    "attention_bias": True,
    "mlp_bias": True,
    "hidden_activation": "silu",
    "norm_eps": 1e-3,
}

GEMMA2 = {
    **SIZES,
    "num_hidden_layers": 4,
    "head_dim": 16,
    "sliding_window": 4,
    "hidden_size_per_layer_input": 32,
    "embedding_dim": 24,
}
ROPES = {
    "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
}

ROTARY = {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}, "layer_norm_eps": 1e-3}
SCALED = {"rope_parameters": ROTARY["rope_parameters"], "attention_bias": True, "mlp_bias": True, "rms_norm_eps": 1e-3}
SINES = {"sinusoidal_pos_embds": True}
DISTILLED = {
    "vocab_size": 64,
    "dim": 32,
    "hidden_dim": 64,
    "n_layers": 3,
    "n_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
    "layer_norm_eps": "layer_norm_epsilon",
    "rope_theta": "rotary_emb_base",
}

FAMILIES = (
    Family(
        "bert",
        (
            Case("plain"),
            Case("another activation, two heads", ODD),
            *(Case(act, {"hidden_act": act}) for act in ("gelu_new", "gelu_pytorch_tanh", "silu")),
        ),
        class_name="BertModel",
        sizes=BERT,
        task="embed",
    ),
    Family(
        "bert",
        (Case("one label", {"num_labels": 1}), Case("five labels, another activation", {**ODD, "num_labels": 5})),
        class_name="BertForSequenceClassification",
        sizes=BERT,
        task="rerank",
    ),
    *(
        Family(
            model_type,
            (Case("plain"), Case("padding is 5, another activation", {**ODD, "pad_token_id": 5})),
            class_name=f"{name}Model",
            sizes=BERT,
            task="embed",
        )
        for model_type, name in (("roberta", "Roberta"), ("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert"))
    ),
    *(
        Family(
            model_type,
            (
                Case("one label", {"num_labels": 1}),
                Case("three labels, padding is 0", {**ODD, "num_labels": 3, "pad_token_id": 0}),
            ),
            class_name=f"{name}ForSequenceClassification",
            sizes=BERT,
            task="rerank",
        )
        for model_type, name in (("roberta", "Roberta"), ("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert"))
    ),
    Family(
        "modernbert",
        (Case("plain"), Case("listed layers, biases, scaled rope", GLOBAL)),
        class_name="ModernBertModel",
        sizes=SLIDING,
        older=OLDER,
        task="embed",
    ),
    Family(
        "modernbert",
        (
            Case("one label", {"num_labels": 1}),
            Case(
                "mean pooling, three labels, biases",
                {
                    **GLOBAL,
                    "classifier_pooling": "mean",
                    "num_labels": 3,
                    "classifier_bias": True,
                    "classifier_activation": "relu",
                },
            ),
        ),
        class_name="ModernBertForSequenceClassification",
        sizes=SLIDING,
        older=OLDER,
        task="rerank",
    ),
    Family(
        "embedding_gemma2_text",
        (
            Case("one of two sees all", {"sliding_window_pattern": 2, "global_head_dim": 32}),
            Case(
                "listed layers, biases, heads by layer",
                {
                    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
                    "per_layer_config": {str(layer): {"head_dim": 8, "num_key_value_heads": 4} for layer in (0, 3)},
                    "attention_bias": True,
                    "rope_parameters": ROPES,
                    "hidden_activation": "silu",
                    "rms_norm_eps": 1e-3,
                },
            ),
        ),
        class_name="EmbeddingGemma2TextModel",
        sizes=GEMMA2,
        task="embed",
    ),
    Family(
        "nomic_bert",
        (Case("plain"), Case("scaled rope, wide heads", {**ROTARY, "head_dim": 16, "hidden_act": "gelu"})),
        class_name="NomicBertModel",
        sizes=WITHOUT_SHARED_HEADS,
        older=GPT2_NAMES,
        task="embed",
    ),
    Family(
        "nomic_bert",
        (Case("one label", {"num_labels": 1}), Case("three labels", {**ROTARY, "num_labels": 3})),
        class_name="NomicBertForSequenceClassification",
        sizes=WITHOUT_SHARED_HEADS,
        task="rerank",
    ),
    Family(
        "gte",
        (Case("plain"), Case("no segments, scaled rope", {**ROTARY, "type_vocab_size": 0, "hidden_act": "silu"})),
        class_name="GteModel",
        sizes=WITHOUT_SHARED_HEADS,
        task="embed",
    ),
    Family(
        "gte",
        (Case("one label", {"num_labels": 1}), Case("three labels", {**ROTARY, "num_labels": 3})),
        class_name="GteForSequenceClassification",
        sizes=WITHOUT_SHARED_HEADS,
        task="rerank",
    ),
    Family(
        "eurobert",
        (Case("plain"), Case("biases, wide heads, scaled rope", {**SCALED, "head_dim": 16})),
        class_name="EuroBertModel",
        sizes={**SIZES, "pad_token_id": 0},
        task="embed",
    ),
    Family(
        "eurobert",
        (
            Case("scores of each token, one label", {"num_labels": 1}),
            Case("the first token, three labels", {**SCALED, "num_labels": 3, "classifier_pooling": "bos"}),
            Case("the mean of tokens", {"num_labels": 2, "classifier_pooling": "mean", "num_key_value_heads": None}),
        ),
        class_name="EuroBertForSequenceClassification",
        sizes={**SIZES, "pad_token_id": 0},
        task="rerank",
    ),
    Family(
        "mpnet",
        (Case("plain"), Case("another activation, two heads", {**ODD, "type_vocab_size": 2})),
        class_name="MPNetModel",
        sizes=BERT,
        task="embed",
    ),
    Family(
        "mpnet",
        (Case("one label", {"num_labels": 1}), Case("three labels", {"num_labels": 3, "num_attention_heads": 2})),
        class_name="MPNetForSequenceClassification",
        sizes=BERT,
        task="rerank",
    ),
    Family(
        "distilbert",
        (Case("plain"), Case("another activation, two heads, sines", {"activation": "relu", **SINES, "n_heads": 2})),
        class_name="DistilBertModel",
        sizes=DISTILLED,
        task="embed",
    ),
    Family(
        "distilbert",
        (Case("one label", {"num_labels": 1}), Case("three labels", {"num_labels": 3, "n_heads": 2})),
        class_name="DistilBertForSequenceClassification",
        sizes=DISTILLED,
        task="rerank",
    ),
)
