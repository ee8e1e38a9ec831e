"""Text models of wholes that see: loaded alone, they answer a prompt of text as the whole does."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.oracle.logits import assert_close
from weightloom.runtime.loading.loading import load

pytestmark = pytest.mark.oracle

TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": 9,
}
SIGHT = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
GEMMA_3 = {
    "text_config": {**TEXT, "model_type": "gemma3_text", "query_pre_attn_scalar": 8},
    "vision_config": {**SIGHT, "model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14},
    "mm_tokens_per_image": 4,
    "image_token_index": 63,
}
GEMMA_4 = {
    "text_config": {
        **TEXT,
        "model_type": "gemma4_text",
        "global_head_dim": 16,
        "num_kv_shared_layers": 1,
        "vocab_size_per_layer_input": 64,
        "hidden_size_per_layer_input": 32,
    },
    "vision_config": {**SIGHT, "num_key_value_heads": 2, "head_dim": 16, "position_embedding_size": 64},
    "image_token_id": 63,
    "audio_token_id": 62,
    "video_token_id": 61,
}


@pytest.mark.parametrize(("name", "values"), [("Gemma3", GEMMA_3), ("Gemma4", GEMMA_4)])
def test_the_text_model_answers_as_the_whole(tmp_path: Path, name: str, values: dict[str, Any]) -> None:
    import torch
    import transformers

    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(**values)
    config._attn_implementation = "eager"
    whole = getattr(transformers, f"{name}ForConditionalGeneration")(config).float().eval()
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.copy_(torch.randn(parameter.shape) / 3)
    whole.save_pretrained(tmp_path)
    tokens = np.random.default_rng(7).integers(1, 60, (2, 20))
    with torch.no_grad():
        wanted = whole(torch.tensor(tokens)).logits.numpy()
    m = load(tmp_path, text_only=True)
    assert m.architecture.name == values["text_config"]["model_type"]
    assert_close(np.array(m.model(mx.array(tokens))), wanted)
