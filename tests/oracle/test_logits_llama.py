"""Llama and Mistral against the reference implementation, beyond what the kit tries.

Frequencies that follow the length, a class of the reference that is another's, and half precision.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.oracle.logits import LENGTH, assert_close, config_of, load, through_cache, whole, write_reference

pytestmark = pytest.mark.oracle

DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 5000.0}


def test_dynamic_rope_beyond_the_trained_length_at_once(tmp_path: Path) -> None:
    tokens, reference = write_reference(
        "LlamaForCausalLM",
        "LlamaConfig",
        tmp_path,
        LENGTH,
        rope_parameters=dict(DYNAMIC),
        max_position_embeddings=20,
    )
    assert_close(whole(load(tmp_path, config_of(tmp_path)), tokens), reference)


def test_layers_of_two_kinds(tmp_path: Path) -> None:
    """The reference has a class of its own for a Mistral some of whose layers see all."""
    types = ["sliding_attention", "full_attention", "sliding_attention"]
    values = {"layer_types": types, "sliding_window": 6, "head_dim": 8}
    tokens, reference = write_reference("MinistralForCausalLM", "MinistralConfig", tmp_path, LENGTH, **values)
    config = {**config_of(tmp_path), "model_type": "mistral"}
    module = load(tmp_path, config)
    assert_close(whole(module, tokens), reference)
    assert_close(through_cache(module, tokens), reference)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_as_close_to_float32_as_the_reference_gets(tmp_path: Path, dtype: str) -> None:
    import torch
    import transformers

    tokens, _ = write_reference("LlamaForCausalLM", "LlamaConfig", tmp_path, LENGTH)
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path).to(getattr(torch, dtype)).eval()
    model.save_pretrained(tmp_path)
    ours = whole(load(tmp_path, config_of(tmp_path)), tokens)
    with torch.no_grad():
        theirs = model(torch.tensor(tokens)).logits.float().numpy()
        exact = model.float()(torch.tensor(tokens)).logits.numpy()
    assert np.abs(ours - exact).max() <= 1.5 * np.abs(theirs - exact).max()
