"""The decoders that come with the package, by the kit."""

from typing import Any

from tests.plugins.tiny import CONFIGS, EXPERTS, SIZES
from weightloom.plugins.testing import Conformance, Sample

TWO_KINDS: dict[str, Any] = {
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {"full_attention": {"rope_theta": 5000.0}, "sliding_attention": {"rope_theta": 100.0}},
}
BIASES = {"attention_bias": True, "mlp_bias": True}


def sample(name: str, model_type: str, **changes: Any) -> Sample:
    return Sample(name, {**CONFIGS[model_type], **changes})


class TestLlama(Conformance):
    samples = (
        sample("plain", "llama"),
        sample("tied", "llama", tie_word_embeddings=True, head_dim=16),
        sample("two kinds of layers", "llama", **TWO_KINDS),
        sample("partial rope, biases", "llama", partial_rotary_factor=0.5, **BIASES),
    )


class TestMistral(Conformance):
    samples = (
        sample("sliding", "mistral"),
        sample("a window of one", "mistral", sliding_window=1),
        sample("no window", "mistral", sliding_window=None, tie_word_embeddings=True),
    )


class TestMixtral(Conformance):
    samples = (
        sample("plain", "mixtral", intermediate_size=32),
        sample("sliding", "mixtral", sliding_window=6),
    )


class TestQwen3Moe(Conformance):
    samples = (
        sample("a dense layer", "qwen3_moe"),
        sample("sliding", "qwen3_moe", use_sliding_window=True, sliding_window=8),
        Sample("all experts", {**SIZES, **EXPERTS, "model_type": "qwen3_moe", "norm_topk_prob": True}),
    )
