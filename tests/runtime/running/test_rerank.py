"""rerank: a classifier's scores, which label and activation, padding and length; a generator that is asked to judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.models import classifier, pair_tokenizer, runnable, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError, PlanError, UsageError
from weightloom.runtime import LoadedModel, embed, generate, load, rerank
from weightloom.runtime.running.pairs import encode_pairs

QUERY, DOCUMENTS = "what", ["a", "a longer one", "of middle"]
TEMPLATE = "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}{% endfor %}?"
STRUCTURED = TEMPLATE.replace("m.content", "m.content[0].text")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return classifier(tmp_path_factory.mktemp("classifier"))


@pytest.fixture(scope="module")
def m(path: Path) -> LoadedModel:
    return load(path)


def logits(m: LoadedModel, query: str, document: str, length: int | None = None) -> np.ndarray[Any, Any]:
    """One pair alone, without padding, by the tokenizer's own framing and truncation."""
    backend = m.need_tokenizer().backend
    if length is not None:
        backend.enable_truncation(length, strategy="longest_first")
    found = backend.encode(query, document)
    backend.no_truncation()
    return np.array(m.model(mx.array([found.ids]), None, mx.array([found.type_ids])))[0]


def sigmoid(value: Any) -> Any:
    return 1 / (1 + np.exp(-value))


def test_a_batch_is_each_pair_alone_in_the_documents_order(m: LoadedModel) -> None:
    assert (m.task, m.architecture.name) == ("rerank", "bert_classifier")
    expected = [sigmoid(logits(m, QUERY, each)[0]) for each in DOCUMENTS]
    assert np.abs(np.array(rerank(m, QUERY, DOCUMENTS)) - expected).max() < 1e-5
    assert np.abs(np.array(rerank(m, QUERY, DOCUMENTS[::-1])) - expected[::-1]).max() < 1e-5
    many = rerank(m, QUERY, DOCUMENTS * 15)
    assert len(many) == 45 and np.abs(np.array(many) - expected * 15).max() < 1e-5
    raw = [logits(m, QUERY, each)[0] for each in DOCUMENTS]
    assert np.abs(np.array(rerank(m, QUERY, DOCUMENTS, activation="identity")) - raw).max() < 1e-5


@pytest.mark.parametrize(
    ("config", "raw"),
    [
        ({}, False),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, True),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, False),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, True),
        ({"sentence_transformers": {"version": "6.0"}, "sbert_ce_default_activation_function": None}, False),
    ],
)
def test_the_files_say_the_activation(tmp_path: Path, config: dict[str, Any], raw: bool) -> None:
    m = load(classifier(tmp_path, **config))
    logit = logits(m, QUERY, "a")[0]
    assert np.isclose(rerank(m, QUERY, ["a"])[0], logit if raw else sigmoid(logit), atol=1e-5)


@pytest.mark.parametrize("field", ["sentence_transformers", "sbert_ce_default_activation_function"])
@pytest.mark.parametrize("value", ["torch.nn.modules.activation.Tanh", 3])
def test_an_activation_that_is_not_known_is_named(tmp_path: Path, field: str, value: object) -> None:
    changes: dict[str, Any] = {field: {"activation_fn": value} if field == "sentence_transformers" else value}
    m = load(classifier(tmp_path, **changes))
    with pytest.raises(ConfigError, match="activation") as raised:
        rerank(m, QUERY, ["a"])
    assert raised.value.field is not None and raised.value.field.startswith(field)


def test_of_several_labels_one_is_named(tmp_path: Path) -> None:
    m = load(classifier(tmp_path, "no", "maybe", "yes"))
    scores = np.exp(logits(m, QUERY, "a"))
    for number, label in enumerate(("no", "maybe", "yes")):
        assert np.isclose(rerank(m, QUERY, ["a"], label=label)[0], scores[number] / scores.sum(), atol=1e-5)
    for label in (None, "perhaps"):
        with pytest.raises(UsageError, match="3 labels") as raised:
            rerank(m, QUERY, ["a"], label=label)
        assert raised.value.expected is not None and "no, maybe, yes" in raised.value.expected


def test_a_label_that_is_there_twice_names_none(tmp_path: Path) -> None:
    m = load(classifier(tmp_path, "no", "no", "yes"))
    with pytest.raises(UsageError, match="several labels 'no'"):
        rerank(m, QUERY, ["a"], label="no")
    assert len(rerank(m, QUERY, ["a"], label="yes")) == 1


def test_pairs_are_cut_to_what_the_files_and_the_model_allow(tmp_path: Path, m: LoadedModel) -> None:
    long = "a document that goes on and on"
    for length in (8, 13, 24, 200):
        expected = sigmoid(logits(m, "a query", long, min(length, 24))[0])
        assert np.isclose(rerank(m, "a query", [long], max_length=length)[0], expected, atol=1e-5)
    path = pair_tokenizer(classifier(tmp_path / "a"), model_max_length=11)
    expected = sigmoid(logits(m, "a query", long, 11)[0])
    assert np.isclose(rerank(load(path), "a query", [long])[0], expected, atol=1e-5)
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9, "do_lower_case": True}))
    expected = sigmoid(logits(m, "a query", long, 9)[0])
    assert np.isclose(rerank(load(path), "A Query", [long.upper()])[0], expected, atol=1e-5)


@given(st.text("abc", max_size=9), st.text("abc", max_size=9), st.integers(5, 15))
def test_truncation_is_that_of_the_reference(m: LoadedModel, one: str, two: str, limit: int) -> None:
    backend = m.need_tokenizer().backend
    (found,) = encode_pairs(m.need_tokenizer(), one, [two], limit)
    backend.enable_truncation(limit, strategy="longest_first")
    expected = backend.encode(one, two)
    backend.no_truncation()
    assert (list(found.ids), list(found.types)) == (expected.ids, expected.type_ids)


def test_token_types_go_to_the_model_unless_the_tokenizers_settings_list_others_alone(tmp_path: Path) -> None:
    path = pair_tokenizer(classifier(tmp_path), model_input_names=["input_ids", "attention_mask"])
    m = load(path)
    ids = mx.array([m.need_tokenizer().backend.encode(QUERY, "a").ids])
    assert np.isclose(rerank(m, QUERY, ["a"])[0], sigmoid(np.array(m.model(ids))[0, 0]), atol=1e-5)
    pair_tokenizer(path, model_input_names="input_ids")
    with pytest.raises(ConfigError, match="model_input_names is 'input_ids'"):
        rerank(load(path), QUERY, ["a"])


def test_the_call_itself_may_be_off(m: LoadedModel, tmp_path: Path) -> None:
    calls: list[tuple[Any, Any]] = [(QUERY, "one text"), (QUERY, []), (QUERY, [3]), (3, ["a"])]
    for query, documents in calls:
        with pytest.raises(UsageError, match="no list of"):
            rerank(m, query, documents)
    with pytest.raises(UsageError, match="'tanh'"):
        rerank(m, QUERY, ["a"], activation="tanh")
    with pytest.raises(UsageError, match="max_length is 4"):
        rerank(m, QUERY, ["a"], max_length=4)
    with pytest.raises(UsageError, match="is for rerank"):
        embed(m, ["a"], pooling="mean")
    with pytest.raises(UsageError, match="is for embed"):
        rerank(load(runnable(tmp_path / "encoder", "bert")), QUERY, ["a"])
    mute = write_model(tmp_path / "mute", "bert", json.loads((m.path / "config.json").read_text()), "bert_classifier")
    with pytest.raises(ConfigError, match="no tokenizer"):
        rerank(load(mute), QUERY, ["a"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id2label": {"1": "a"}}, "id2label"),
        ({"id2label": ["a"]}, "id2label"),
        ({"id2label": {"0": 3}}, "id2label"),
        ({"num_labels": 0}, "num_labels"),
        ({"num_labels": 3}, "num_labels"),
    ],
)
def test_labels_that_cannot_be_are_named(path: Path, tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    copy = classifier(tmp_path)
    content = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**content, **changes}))
    with pytest.raises(ConfigError, match=field) as raised:
        load(copy)
    assert (raised.value.field, raised.value.file) == (field, str(copy / "config.json"))


def test_a_config_without_labels_has_two_and_the_head_must_fit(path: Path, tmp_path: Path) -> None:
    copy = classifier(tmp_path, "a", "b")
    content = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({k: v for k, v in content.items() if k != "id2label"}))
    assert load(copy).model.classifier.weight.shape == (2, 16)
    (copy / "config.json").write_text(json.dumps({**content, "id2label": {"0": "a"}}))
    with pytest.raises(PlanError, match="classifier"):
        load(copy)


def test_it_is_written_back_byte_for_byte(path: Path, m: LoadedModel, tmp_path: Path) -> None:
    m.save(tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()


def judge(folder: Path, template: str = TEMPLATE, **content: Any) -> Path:
    """A decoder with a template for pairs, and the step that says which tokens are yes and no."""
    runnable(folder, tie_word_embeddings=True)
    (folder / "chat_template.jinja").write_text(template)
    steps = [{"type": "x.Transformer", "path": ""}, {"type": "x.LogitScore", "path": "1_LogitScore"}]
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "1_LogitScore").mkdir()
    (folder / "1_LogitScore" / "config.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("template", [TEMPLATE, STRUCTURED], ids=["flat", "structured"])
@pytest.mark.parametrize("no", [None, 7])
def test_a_generator_judges_where_it_is_asked_to(tmp_path: Path, template: str, no: int | None) -> None:
    path = judge(tmp_path, template, true_token_id=5, false_token_id=no)
    m = load(path, task="rerank")
    assert m.task == "rerank" and m.architecture.name == "llama"
    for document, score in zip(DOCUMENTS, rerank(m, QUERY, DOCUMENTS), strict=True):
        ids = m.need_tokenizer().encode(f"<q>{QUERY}<d>{document}?", add_special_tokens=False)
        last = np.array(m.model(mx.array([ids])))[0, -1]
        assert np.isclose(score, sigmoid(last[5] - (0 if no is None else last[7])), atol=1e-5)
    with pytest.raises(UsageError, match="document 1 have"):
        rerank(m, QUERY, DOCUMENTS, max_length=14)
    with pytest.raises(UsageError, match="is for rerank"):
        generate(m, "a")


def test_unasked_it_generates(tmp_path: Path) -> None:
    m = load(judge(tmp_path, true_token_id=5))
    assert m.task == "generate"
    with pytest.raises(UsageError, match="is for generate") as raised:
        rerank(m, QUERY, DOCUMENTS)
    assert raised.value.hint is not None and "--task rerank" in raised.value.hint


@pytest.mark.parametrize("value", [None, "5", -1, True])
def test_a_verdict_that_is_no_token_is_named(tmp_path: Path, value: object) -> None:
    m = load(judge(tmp_path, true_token_id=value), task="rerank")
    with pytest.raises(ConfigError, match="true_token_id") as raised:
        rerank(m, QUERY, DOCUMENTS)
    assert raised.value.file == str(tmp_path / "1_LogitScore" / "config.json")


def test_a_verdict_beyond_the_vocabulary_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="token id 9999"):
        rerank(load(judge(tmp_path, true_token_id=9999), task="rerank"), QUERY, DOCUMENTS)


def test_a_generator_that_was_not_made_to_judge_says_what_it_lacks(tmp_path: Path) -> None:
    plain = load(runnable(tmp_path / "plain"), task="rerank")
    with pytest.raises(UsageError, match="which token of this generator is a yes"):
        rerank(plain, QUERY, DOCUMENTS)
    chat = judge(
        tmp_path / "chat", "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", true_token_id=5
    )
    with pytest.raises(UsageError, match="does not show a query and a document"):
        rerank(load(chat, task="rerank"), QUERY, DOCUMENTS)
    bare = judge(tmp_path / "bare", true_token_id=5)
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(UsageError, match="no chat template"):
        rerank(load(bare, task="rerank"), QUERY, DOCUMENTS)


def test_the_command_has_the_best_first(cli: Cli, path: Path, m: LoadedModel, tmp_path: Path) -> None:
    scores = rerank(m, QUERY, DOCUMENTS)
    ran = cli("rerank", path, QUERY, *DOCUMENTS, "--json")
    assert ran.code == 0 and np.allclose(ran.data["scores"], scores)
    assert [each["index"] for each in ran.data["ranking"]] == list(np.argsort(scores)[::-1])
    shown = cli("rerank", path, QUERY, *DOCUMENTS).out.splitlines()
    best = int(np.argmax(scores))
    assert shown[0] == f"{scores[best]:8.4f}  {DOCUMENTS[best]}" and len(shown) == 3
    raw = cli("rerank", path, QUERY, *DOCUMENTS, "--activation", "identity", "--max-length", 8, "--json")
    assert np.allclose(raw.data["scores"], rerank(m, QUERY, DOCUMENTS, activation="identity", max_length=8))
    several = classifier(tmp_path / "several", "no", "yes")
    assert (
        cli("rerank", several, QUERY, "a").code == 2 and cli("rerank", several, QUERY, "a", "--label", "yes").code == 0
    )
    asked = judge(tmp_path / "judge", true_token_id=5)
    assert cli("rerank", asked, QUERY, "a").code == 2 and cli("rerank", asked, QUERY, "a", "--task", "rerank").code == 0
    assert cli("rerank", path, QUERY).code == 2 and cli("rerank", path, QUERY, "a", "--task", "sing").code == 2


def test_a_pair_without_tokens_is_named(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    bare = json.loads((path / "tokenizer.json").read_text()) | {"post_processor": None}
    (path / "tokenizer.json").write_text(json.dumps(bare))
    with pytest.raises(UsageError, match="query and document 1 have no tokens"):
        rerank(load(path), "", ["a", ""])
