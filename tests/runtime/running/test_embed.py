"""embed: pooling and normalisation as the files say, padding and the mask, order; the command; a real model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import minilm
from tests.runtime.models import runnable, sentence_files, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime import LoadedModel, embed, load
from weightloom.runtime.running.pooling import pool

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "trained" / "minilm.json").read_text(encoding="utf-8"))
TEXTS = ["a", "a longer text", "of middle", "x" * 60, "größe 東京"]
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sentence_files(runnable(tmp_path_factory.mktemp("bert"), "bert"))


@pytest.fixture(scope="module")
def m(path: Path) -> LoadedModel:
    return load(path)


def alone(m: LoadedModel, text: str, length: int = 20) -> Array:
    """Mean and norm in NumPy, of one text without padding."""
    ids = m.need_tokenizer().encode(text)[:length]
    mean = np.array(m.model(mx.array([ids])))[0].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def test_a_batch_is_each_text_alone_whatever_its_padding(m: LoadedModel) -> None:
    found = np.array(embed(m, TEXTS))
    assert found.shape == (5, 16) and found.dtype == np.float32
    for row, text in zip(found, TEXTS, strict=True):
        assert np.abs(row - alone(m, text)).max() < 1e-5


@settings(max_examples=20)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), min_size=1, max_size=70), st.randoms())
def test_rows_come_in_the_order_of_the_texts(m: LoadedModel, texts: list[str], chance: Any) -> None:
    shuffled = list(enumerate(texts))
    chance.shuffle(shuffled)
    straight = np.array(embed(m, texts))
    mixed = np.array(embed(m, [text for _, text in shuffled]))
    for (number, _), row in zip(shuffled, mixed, strict=True):
        assert np.abs(straight[number] - row).max() < 1e-4


@pytest.mark.parametrize(
    ("how", "expected"),
    [("mean", [2.0, 5.0]), ("cls", [1.0, 7.0]), ("max", [3.0, 7.0]), ("lasttoken", [3.0, 3.0])],
)
def test_pooling_minds_the_mask(how: Any, expected: list[float]) -> None:
    hidden = mx.array([[[1.0, 7.0], [3.0, 3.0], [100.0, 100.0]], [[1.0, 7.0], [3.0, 3.0], [-100.0, -100.0]]])
    mask = mx.array([[1, 1, 0], [1, 1, 0]])
    assert pool(hidden, mask, (how,)).tolist() == [expected, expected]


def test_pooling_and_norm_can_be_chosen(m: LoadedModel) -> None:
    raw = np.array(embed(m, TEXTS, pooling="cls", normalize=False))
    ids = m.need_tokenizer().encode(TEXTS[1])
    assert np.abs(raw[1] - np.array(m.model(mx.array([ids])))[0, 0]).max() < 1e-5
    assert np.allclose(np.linalg.norm(np.array(embed(m, TEXTS)), axis=1), 1)


def test_lower_case_where_the_files_say_so(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "lower")
    file = tmp_path / "lower" / "sentence_bert_config.json"
    file.write_text(json.dumps({"max_seq_length": 20, "do_lower_case": True}))
    lower = load(tmp_path / "lower")
    assert mx.array_equal(embed(lower, ["LOUD"]), embed(lower, ["loud"])).item()
    assert not mx.array_equal(embed(load(path), ["LOUD"]), embed(lower, ["loud"])).item()


def test_the_call_itself_may_be_off(m: LoadedModel, tmp_path: Path) -> None:
    calls: list[Any] = ["one text", [], [""]]
    for texts in calls:
        with pytest.raises(UsageError, match="text"):
            embed(m, texts)
    silent = load(runnable(tmp_path / "silent", "bert"))
    with pytest.raises(UsageError, match="pooling"):
        embed(silent, ["text"])
    assert embed(silent, ["text"], pooling="mean").shape == (1, 16)
    with pytest.raises(UsageError, match="'median'"):
        embed(silent, ["text"], pooling="median")
    with pytest.raises(ConfigError, match="no tokenizer"):
        embed(load(write_model(tmp_path / "mute", "bert")), ["text"], pooling="mean")


def test_ids_beyond_the_vocabulary_are_refused(tmp_path: Path) -> None:
    m = load(runnable(tmp_path, "bert", vocab_size=50))
    with pytest.raises(UsageError, match="token id"):
        embed(m, ["ÿ"], pooling="mean")


def test_rows_longer_than_the_position_table_are_refused(m: LoadedModel) -> None:
    with pytest.raises(UsageError, match="25 tokens"):
        m.model(mx.zeros((1, 25), dtype=mx.int32))


def test_the_command_shows_cosines(cli: Cli, path: Path, m: LoadedModel, tmp_path: Path) -> None:
    ran = cli("embed", path, "one", "two", "--json")
    assert ran.code == 0 and ran.data["texts"] == ["one", "two"] and ran.data["dimensions"] == 16
    vectors = np.array(embed(m, ["one", "two"]))
    assert np.allclose(ran.data["embeddings"], vectors)
    assert np.allclose(ran.data["cosines"], vectors @ vectors.T, atol=1e-6)
    shown = cli("embed", path, "one", "two").out.splitlines()
    assert shown[0].split() == ["one", "1.000", f"{vectors[0] @ vectors[1]:.3f}"] and "16 dimensions" in shown
    lines = tmp_path / "texts.txt"
    lines.write_text("one\n\ntwo\n")
    assert cli("embed", path, "--file", lines).out.splitlines() == shown


def test_the_command_refuses(cli: Cli, path: Path, tmp_path: Path) -> None:
    assert cli("embed", path).code == 2
    assert cli("embed", path, "--file", tmp_path / "none").code == 3
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    ran = cli("embed", path, "--file", tmp_path / "bytes")
    assert ran.code == 2 and "UTF-8" in ran.err
    assert cli("embed", tmp_path / "nowhere", "x").code == 1


@pytest.fixture(scope="module")
def trained(request: pytest.FixtureRequest) -> LoadedModel:
    return load(minilm.fetch(request.config.cache.mkdir("minilm")))


@pytest.mark.real
def test_a_trained_model_embeds_as_the_reference(trained: LoadedModel) -> None:
    sentences, expected = GOLDEN["sentences"], np.array(GOLDEN["embeddings"])
    assert [trained.need_tokenizer().encode(text) for text in sentences] == GOLDEN["input_ids"]
    together = np.array(embed(trained, sentences))
    assert np.abs(together - expected).max() <= 1e-5
    backwards = np.array(embed(trained, sentences[::-1]))[::-1]
    assert np.abs(backwards - expected).max() <= 1e-5
    for text, row in zip(sentences, expected, strict=True):
        assert np.abs(np.array(embed(trained, [text]))[0] - row).max() <= 1e-5


@pytest.mark.real
def test_a_text_too_long_is_cut_at_the_length_that_the_files_say(trained: LoadedModel) -> None:
    long = "word " * 400
    (row,) = trained.need_tokenizer().encode_batch([long], trained.embedder.settings.text.max_length)
    assert len(row) == 256 and (row[0], row[-1]) == (101, 102)
    assert np.abs(np.array(embed(trained, [long])) - np.array(embed(trained, ["word " * 254]))).max() < 1e-6
