"""Llama and Mistral against the reference implementation: every rope kind, tied and not, head sizes, windows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.logits import LENGTH, as_v4, assert_close, config_of, load, through_cache, whole, write_reference

pytestmark = pytest.mark.oracle

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 5000.0}
ROPES: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 5000.0},
    "linear": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 5000.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
        "rope_theta": 5000.0,
    },
    "yarn": YARN,
    "yarn, untruncated": {**YARN, "truncate": False, "beta_fast": 8.0},
    "yarn, attention factor": {**YARN, "attention_factor": 1.3},
    "yarn, mscale": {**YARN, "mscale": 1.2, "mscale_all_dim": 0.7},
}
SAMPLE = pytest.mark.sample


def check(folder: Path, class_name: str, config_name: str, length: int = LENGTH, **values: Any) -> None:
    tokens, reference = write_reference(class_name, config_name, folder, length, **values)
    config = config_of(folder)
    for form in (config, as_v4(config)):
        module = load(folder, form)
        assert_close(whole(module, tokens), reference)
        assert_close(through_cache(module, tokens), reference)


@SAMPLE
@pytest.mark.parametrize("kind", ROPES)
def test_every_rope_kind(tmp_path: Path, kind: str) -> None:
    check(tmp_path, "LlamaForCausalLM", "LlamaConfig", rope_parameters=dict(ROPES[kind]))


@SAMPLE
def test_tied_embeddings_and_a_head_size_of_its_own(tmp_path: Path) -> None:
    check(tmp_path, "LlamaForCausalLM", "LlamaConfig", tie_word_embeddings=True, head_dim=16)


@SAMPLE
def test_biases_and_another_activation(tmp_path: Path) -> None:
    values = {"attention_bias": True, "mlp_bias": True, "hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": None}
    check(tmp_path, "LlamaForCausalLM", "LlamaConfig", **values)


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu", "silu"])
def test_activations(tmp_path: Path, act: str) -> None:
    check(tmp_path, "LlamaForCausalLM", "LlamaConfig", hidden_act=act)


def test_dynamic_rope_beyond_the_trained_length_at_once(tmp_path: Path) -> None:
    tokens, reference = write_reference(
        "LlamaForCausalLM",
        "LlamaConfig",
        tmp_path,
        LENGTH,
        rope_parameters=dict(ROPES["dynamic"]),
        max_position_embeddings=20,
    )
    assert_close(whole(load(tmp_path, config_of(tmp_path)), tokens), reference)


def test_dynamic_rope_beyond_the_trained_length_through_the_cache(tmp_path: Path) -> None:
    """Older keys keep the frequencies of their time, here as there."""
    import torch
    import transformers

    values = {"rope_parameters": dict(ROPES["dynamic"]), "max_position_embeddings": 20}
    tokens, _ = write_reference("LlamaForCausalLM", "LlamaConfig", tmp_path, 40, **values)
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    past = transformers.DynamicCache(config=model.config)
    starts = [0, 7, 14, *range(21, 40)]
    with torch.no_grad():
        parts = [
            model(torch.tensor(tokens[:, a:b]), cache=past).logits
            for a, b in zip(starts, [*starts[1:], 40], strict=True)
        ]
    assert_close(through_cache(load(tmp_path, config_of(tmp_path)), tokens), torch.cat(parts, 1).numpy())


@SAMPLE
@pytest.mark.parametrize("window", [1, 5, 7, 8, 13, 47, 48, 64])
def test_a_window_shorter_than_the_prompt(tmp_path: Path, window: int) -> None:
    check(tmp_path, "MistralForCausalLM", "MistralConfig", sliding_window=window)


def test_mistral_without_a_window(tmp_path: Path) -> None:
    check(tmp_path, "MistralForCausalLM", "MistralConfig", sliding_window=None, tie_word_embeddings=True)


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
