"""Special tokens in each form that files state them in, which vocabulary is taken, and all ids that end a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.models import add_tokenizer, runnable
from tests.vocabularies import AS_IS, LLAMA, UNKNOWN, llama_like, piece, sentencepiece_bytes, write_tekken
from weightloom.engine.errors import WeightloomError
from weightloom.runtime import load
from weightloom.runtime.cli import main
from weightloom.runtime.tokenizing.special_tokens import read_special_tokens
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer

IMAGE = {"__type": "AddedToken", "content": "<image>", "special": True, "lstrip": False}


def loaded(folder: Path, **settings: Any) -> Tokenizer:
    found = load_tokenizer(add_tokenizer(folder, **settings))
    assert found is not None
    return found


FORMS: list[dict[str, Any]] = [
    {"extra_special_tokens": ["<image>"]},
    {"extra_special_tokens": [IMAGE]},
    {"extra_special_tokens": {"image_token": "<image>"}},
    {"extra_special_tokens": {"image_token": IMAGE}},
    {"additional_special_tokens": ["<image>"]},
    {"model_specific_special_tokens": {"image_token": "<image>"}},
]


@pytest.mark.parametrize("settings", FORMS)
def test_further_tokens_are_found_whole_in_every_form(tmp_path: Path, settings: dict[str, Any]) -> None:
    found = loaded(tmp_path, **settings)
    assert found.encode("a<image>") == [*found.encode("a"), 258]
    assert found.decode([258, *found.encode("a")]) == "a"
    named = any(isinstance(value, dict) for value in settings.values())
    assert found.special.get("image_token") == ("<image>" if named else None)


@pytest.mark.oracle
@pytest.mark.parametrize("settings", FORMS)
def test_transformers_gives_the_same_ids_in_every_form(tmp_path: Path, settings: dict[str, Any]) -> None:
    found = loaded(tmp_path, **settings, eos_token="</s>")
    reference = pytest.importorskip("transformers").PreTrainedTokenizerFast.from_pretrained(tmp_path)
    text = "<s>a<image> b</s>"
    assert found.encode(text) == reference.encode(text)
    assert found.decode(found.encode(text)) == reference.decode(reference.encode(text), skip_special_tokens=True)


def test_templates_see_named_tokens(tmp_path: Path) -> None:
    found = loaded(tmp_path, extra_special_tokens={"image_token": "<image>"}, chat_template="{{ image_token }}{{ x }}")
    assert found.apply_chat_template([], x=1) == "<image>1"


def test_tokens_that_are_there_keep_their_ids_and_how_they_are_found(tmp_path: Path) -> None:
    import tokenizers

    made = tokenizers.Tokenizer.from_file(str(add_tokenizer(tmp_path) / "tokenizer.json"))
    made.add_tokens([tokenizers.AddedToken("<x>", lstrip=True, normalized=False)])
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_special_tokens": ["<x>", "<s>"]}))
    found = load_tokenizer(tmp_path)
    assert found is not None and found.encode("a  <x>") == [*found.encode("a"), 258]
    assert found.decode([258, 256]) == ""


def test_the_older_file_is_read_too(tmp_path: Path) -> None:
    folder = add_tokenizer(tmp_path)
    older = {"pad_token": "</s>", "bos_token": "</s>", "additional_special_tokens": ["<y>"]}
    (folder / "special_tokens_map.json").write_text(json.dumps(older))
    stated = read_special_tokens(folder)
    assert stated.named == {"pad_token": "</s>", "bos_token": "<s>", "eos_token": "</s>"} and stated.further == ("<y>",)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"bos_token": 5}, "bos_token"),
        ({"bos_token": ""}, "bos_token"),
        ({"eos_token": {"text": "x"}}, "eos_token"),
        ({"extra_special_tokens": "<x>"}, "extra_special_tokens"),
        ({"extra_special_tokens": [5]}, r"extra_special_tokens\[0\]"),
        ({"extra_special_tokens": {"image_token": 5}}, r"extra_special_tokens\.image_token"),
        ({"added_tokens_decoder": [1]}, "added_tokens_decoder"),
        ({"added_tokens_decoder": {"x": "y"}}, r"added_tokens_decoder\.x"),
        ({"added_tokens_decoder": {"1": None}}, r"added_tokens_decoder\.1"),
    ],
)
def test_what_is_no_token_is_named(tmp_path: Path, settings: dict[str, Any], field: str) -> None:
    with pytest.raises(WeightloomError, match=field):
        loaded(tmp_path, **settings)


@pytest.mark.parametrize("section", ["text_config", "llm_config", "language_config"])
def test_all_ids_that_end_a_text_count(tmp_path: Path, section: str) -> None:
    add_tokenizer(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [4, 5]}')
    (tmp_path / "config.json").write_text(f'{{"eos_token_id": 6, "{section}": {{"eos_token_id": [7]}},}}')
    found = load_tokenizer(tmp_path)
    assert found is not None and found.stop_ids == {4, 5, 6, 7, 257}


@pytest.mark.parametrize("value", ["2", [None], True, 1.5, {"a": 1}])
def test_ids_that_are_no_numbers_are_named(tmp_path: Path, value: Any) -> None:
    add_tokenizer(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    with pytest.raises(WeightloomError, match="eos_token_id"):
        load_tokenizer(tmp_path)


def write_llama(folder: Path, name: str = "tokenizer.model", **settings: Any) -> Path:
    (folder / name).write_bytes(sentencepiece_bytes(llama_like(), LLAMA, AS_IS))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("settings", "first", "last"),
    [
        ({}, [1], []),
        ({"tokenizer_class": "LlamaTokenizerFast"}, [1], []),
        ({"bos_token": None}, [], []),
        ({"add_bos_token": False, "add_eos_token": True}, [], [2]),
        ({"add_eos_token": True, "eos_token": "<s>"}, [1], [1]),
    ],
)
def test_what_goes_around_a_text(tmp_path: Path, settings: dict[str, Any], first: list[int], last: list[int]) -> None:
    found = load_tokenizer(write_llama(tmp_path, **settings))
    assert found is not None
    assert found.encode("the") == [*first, found.backend.token_to_id("▁the"), *last]
    assert found.decode(found.encode("the thé")) == "the thé"


def test_t5_has_tokens_after_its_pieces(tmp_path: Path) -> None:
    pieces = [piece("<pad>", 0, 3), piece("</s>", 0, 3), piece("<unk>", 0, UNKNOWN), piece("▁", -2), piece("a", -1)]
    (tmp_path / "spiece.model").write_bytes(sentencepiece_bytes(pieces, {41: 1 << 64 - 1, 42: 1, 43: 0}))
    (tmp_path / "config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    found = load_tokenizer(tmp_path)
    assert found is not None and found.encode("a<extra_id_0>") == [3, 4, 5 + 99, 1] and found.stop_ids == {1}
    assert found.special == {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def test_classes_that_number_tokens_anew_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightloomError, match="XLMRobertaTokenizer") as raised:
        load_tokenizer(write_llama(tmp_path, tokenizer_class="XLMRobertaTokenizer"))
    assert raised.value.field == "tokenizer_class"


def test_tokens_by_id_follow_the_pieces(tmp_path: Path) -> None:
    size = len(llama_like())
    stated = {"1": {"content": "<s>", "special": True}, str(size): {"content": "<tool>", "special": False}}
    found = load_tokenizer(write_llama(tmp_path, added_tokens_decoder=stated))
    assert found is not None and found.encode("<tool>")[-1] == size and found.decode([size]) == "<tool>"
    stated[str(size + 7)] = {"content": "<late>", "special": True}
    with pytest.raises(WeightloomError, match="<late>") as raised:
        load_tokenizer(write_llama(tmp_path, added_tokens_decoder=stated))
    assert raised.value.field == f"added_tokens_decoder.{size + 7}"


def test_ids_of_the_oldest_file_follow_the_pieces(tmp_path: Path) -> None:
    size = len(llama_like())
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<tool>": size + 1, "<pad>": size}))
    found = load_tokenizer(write_llama(tmp_path, pad_token="<pad>"))
    assert found is not None and found.encode("<tool><pad>")[-2:] == [size + 1, size]
    assert found.decode([size + 1, size]) == "<tool>"
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<tool>": size + 1}))
    with pytest.raises(WeightloomError, match="<tool>"):
        load_tokenizer(write_llama(tmp_path))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<tool>": "7"}))
    with pytest.raises(WeightloomError, match="a token's id") as raised:
        load_tokenizer(write_llama(tmp_path))
    assert raised.value.field == "<tool>" and str(raised.value.file).endswith("added_tokens.json")


def test_a_tokenizer_json_is_taken_first_and_of_two_none(tmp_path: Path) -> None:
    write_tekken(write_llama(tmp_path))
    assert load_tokenizer(tmp_path).encode("[INST]") == [1, 3]  # type: ignore[union-attr]
    add_tokenizer(tmp_path)
    assert load_tokenizer(tmp_path).backend.get_vocab_size() == 258  # type: ignore[union-attr]
    other = tmp_path / "other"
    other.mkdir()
    write_llama(other, "tokenizer.model.v3")
    assert load_tokenizer(other) is not None
    with pytest.raises(WeightloomError, match=r"tokenizer\.model\.v3 and tokenizer\.model\.v7|several"):
        load_tokenizer(write_llama(other, "tokenizer.model.v7"))


def test_without_a_tokenizer_the_command_says_what_it_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runnable(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert main(["generate", str(tmp_path), "--prompt", "a"]) == 1
    said = capsys.readouterr().err
    assert "tokenizer.json, tekken.json" in said and "*.tiktoken" in said
    with pytest.raises(WeightloomError, match="no tokenizer"):
        load(tmp_path).need_tokenizer()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 999) | st.text(max_size=4) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "a", "7"]), inner, max_size=2)
    ),
    max_leaves=5,
)
KEYS = [
    *("bos_token", "eos_token", "extra_special_tokens", "additional_special_tokens", "added_tokens_decoder"),
    *(
        "add_bos_token",
        "add_eos_token",
        "tokenizer_class",
        "extra_ids",
        "chat_template",
        "model_specific_special_tokens",
    ),
]


@given(settings=st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4), sentencepiece=st.booleans())
def test_no_settings_bring_another_error(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any], sentencepiece: bool
) -> None:
    folder = tmp_path_factory.getbasetemp() / ("model" if sentencepiece else "json")
    folder.mkdir(exist_ok=True)
    try:
        found = load_tokenizer(write_llama(folder, **settings) if sentencepiece else add_tokenizer(folder, **settings))
    except WeightloomError:
        return
    assert found is not None and isinstance(found.encode("the"), list)
