"""Decoders as embedders and classifiers: which checkpoints they take, and that padding is nobody's neighbour."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, write
from tests.runtime.models import changed, runnable, sentence_files, write_model
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.plugins.layers.embedder import both_ways
from weightloom.plugins.layers.masks import Chunked
from weightloom.runtime import embed, load

TOKENS = mx.array([[5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]])


def with_score(path: Path, labels: int) -> Path:
    """Take the head away and put a classifier's in its place."""
    arrays = {name: np.array(array) for name, array in mx.load(str(path / "model.safetensors")).items()}
    kept = {name: array for name, array in arrays.items() if name != "lm_head.weight"}
    write(path / "model.safetensors", {**kept, **filled({"score.weight": (labels, 32)})})
    return path


@pytest.mark.parametrize(
    ("classes", "name"),
    [(None, "llama"), (["LlamaForCausalLM"], "llama"), (["LlamaModel"], "llama_embedder")],
)
def test_the_class_says_which_it_is(tmp_path: Path, classes: list[str] | None, name: str) -> None:
    assert load(changed(write_model(tmp_path, "llama"), architectures=classes)).architecture.name == name


def test_a_classifier_is_known_by_its_class_or_its_tensor(tmp_path: Path) -> None:
    path = with_score(write_model(tmp_path, "llama"), 3)
    named = changed(path, architectures=["LlamaForSequenceClassification"], num_labels=3)
    assert load(named).architecture.name == "llama_classifier"
    assert load(changed(path, architectures=None)).model(TOKENS).shape == (2, 3)


def test_the_head_is_left_out_and_written_back(tmp_path: Path) -> None:
    path = write_model(tmp_path / "a", "llama")
    m = load(path, task="embed")
    assert [record.name for record in m.report.dropped] == ["lm_head.weight"]
    m.save(tmp_path / "b")
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
    whole = load(path, task="generate").model
    assert mx.allclose(m.model(TOKENS), whole.body(TOKENS)).item()


@pytest.mark.parametrize("flags", [{}, {"is_causal": False}, {"use_bidirectional_attention": True}], ids=str)
def test_padding_in_front_is_not_seen(tmp_path: Path, flags: dict[str, bool]) -> None:
    model = load(changed(write_model(tmp_path, "llama"), **flags), task="embed").model
    alone = model(TOKENS[1:, :4])
    filled_up = mx.concatenate([TOKENS[1:, 4:], TOKENS[1:, :4]], axis=1)
    in_front = model(filled_up, mx.array([[0, 0, 1, 1, 1, 1]]))[:, 2:]
    assert mx.abs(in_front - alone).max().item() < 1e-5
    later = mx.abs(model(TOKENS)[:, :4] - model(TOKENS[:, :4])).max().item()
    assert (later > 1e-3) == bool(flags)


def test_texts_of_any_length_embed_by_their_last_token(tmp_path: Path) -> None:
    m = load(sentence_files(runnable(tmp_path, "llama"), mode="lasttoken"))
    texts = ["a", "a longer text", "of middle"]
    together = embed(m, texts)
    alone = mx.concatenate([embed(m, [text]) for text in texts])
    assert mx.abs(together - alone).max().item() < 1e-5


def test_a_flag_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(changed(write_model(tmp_path, "llama"), is_causal="no"), task="embed")
    assert raised.value.field == "is_causal"
    with pytest.raises(UsageError, match="chunks"):
        both_ways(6, Chunked(4), None)
