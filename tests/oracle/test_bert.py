"""BERT against the reference implementation, beyond what the kit tries: segments, and what has a head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.oracle.logits import Array, assert_close
from weightloom.runtime import load

pytestmark = pytest.mark.oracle

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
}
LENGTHS = (5, 31, 12)


def padded() -> tuple[Array, Array, Array]:
    """Tokens, mask and segments of rows of unlike length."""
    chance = np.random.default_rng(3)
    longest = max(LENGTHS)
    mask = np.array([[1] * length + [0] * (longest - length) for length in LENGTHS])
    tokens = chance.integers(0, SIZES["vocab_size"], mask.shape)
    return tokens, mask, chance.integers(0, 2, mask.shape)


def write_reference(class_name: str, folder: Path, **values: Any) -> Any:
    import torch
    import transformers

    config = transformers.BertConfig(**{**SIZES, **values})
    model = getattr(transformers, class_name)(config).float().eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    model.save_pretrained(folder)
    return getattr(model, "bert", model)


def states(model: Any, tokens: Array, mask: Array, segments: Array) -> Array:
    import torch

    with torch.no_grad():
        given = {"attention_mask": torch.tensor(mask), "token_type_ids": torch.tensor(segments)}
        found: Array = model(torch.tensor(tokens), **given).last_hidden_state.numpy()
    return found


def ours(folder: Path, tokens: Array, mask: Array, segments: Array) -> Array:
    given = (mx.array(each.astype(np.int32)) for each in (tokens, mask, segments))
    return np.array(load(folder, task="embed").model(*given))


@pytest.mark.sample
def test_hidden_states_of_texts_of_two_kinds(tmp_path: Path) -> None:
    batch = padded()
    reference = states(write_reference("BertModel", tmp_path), *batch)
    counts = batch[1].astype(bool)
    assert_close(ours(tmp_path, *batch)[counts], reference[counts])


@pytest.mark.parametrize("class_name", ["BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification"])
def test_a_head_models_checkpoint_gives_its_encoder(tmp_path: Path, class_name: str) -> None:
    batch = padded()
    reference = states(write_reference(class_name, tmp_path), *batch)
    counts = batch[1].astype(bool)
    assert_close(ours(tmp_path, *batch)[counts], reference[counts])
