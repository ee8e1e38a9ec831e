"""How added tokens are found in a text, as tokenizer_config.json states it, whatever the kind of vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import byte_tokenizer
from tests.vocabularies import AS_IS, LLAMA, llama_like, ranked, sentencepiece_bytes, tiktoken_bytes
from weightloom.engine.errors import ConfigError
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer


def token(content: str, **how: bool) -> dict[str, object]:
    return {"content": content, "special": False, "normalized": False, **how}


TOKENS = [
    token("<left>", lstrip=True, special=True),
    token("<right>", rstrip=True),
    token("thin", single_word=True),
    token("in g", normalized=True),
]


def sentencepiece(folder: Path, **settings: Any) -> Tokenizer:
    (folder / "tokenizer.model").write_bytes(sentencepiece_bytes(llama_like(), LLAMA, AS_IS))
    stated = {str(number): each for number, each in enumerate(TOKENS, len(llama_like()))}
    return read(folder, tokenizer_class="LlamaTokenizer", add_bos_token=False, added_tokens_decoder=stated, **settings)


def tiktoken(folder: Path) -> Tokenizer:
    (folder / "qwen.tiktoken").write_bytes(tiktoken_bytes())
    usual = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205))]
    first = len(ranked())
    stated = {str(number): each for number, each in enumerate(TOKENS, first + len(usual))}
    return read(folder, added_tokens_decoder=stated)


def tokenizer_json(folder: Path, **settings: Any) -> Tokenizer:
    """Two of the tokens are in it already, found as plain ones."""
    made = byte_tokenizer()
    made.add_tokens(["<left>", "thin"])
    made.save(str(folder / "tokenizer.json"))
    order = [TOKENS[0], TOKENS[2], TOKENS[1], TOKENS[3]]
    return read(folder, added_tokens_decoder={str(n): each for n, each in enumerate(order, 258)}, **settings)


def read(folder: Path, **settings: Any) -> Tokenizer:
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    found = load_tokenizer(folder)
    assert found is not None
    return found


CASES = [
    ("x  <left>  x", "  <left>"),
    ("x  <right>  x", "<right>  "),
    ("x thin x", "thin"),
    ("xthinx", None),
]


@pytest.mark.parametrize("make", [sentencepiece, tiktoken, tokenizer_json])
@pytest.mark.parametrize(("text", "taken"), CASES)
def test_tokens_are_found_as_stated(tmp_path: Path, make: Any, text: str, taken: str | None) -> None:
    found = make(tmp_path)
    encoding = found.backend.encode(text, add_special_tokens=False)
    ours = {found.backend.token_to_id(str(each["content"])) for each in TOKENS}
    spans = [text[slice(*span)] for span, number in zip(encoding.offsets, encoding.ids, strict=True) if number in ours]
    assert spans == ([] if taken is None else [taken])


def test_a_token_is_looked_for_in_the_prepared_text_where_it_says_so(tmp_path: Path) -> None:
    """SentencePiece's preparation makes spaces its sign, so the token is found where it is prepared likewise."""
    found = sentencepiece(tmp_path)
    assert found.encode("a in g") == [*found.encode("a "), found.backend.token_to_id("in g")]
    assert found.decode(found.encode("a in g")) == "a in g"


def test_a_role_says_how_a_piece_of_the_vocabulary_is_found(tmp_path: Path) -> None:
    found = sentencepiece(tmp_path, eos_token=token("</s>", lstrip=True))
    assert found.encode("a  </s>") == [*found.encode("a"), 2]
    assert found.decode([2]) == "" and found.stop_ids == {2}


def test_a_further_token_says_how_it_is_found(tmp_path: Path) -> None:
    found = sentencepiece(tmp_path, extra_special_tokens={"image_token": token("<image>", rstrip=True)})
    number = len(llama_like()) + len(TOKENS)
    assert found.encode("<image>  a")[0] == number and found.decode([number]) == ""
    assert found.encode("<image>  a")[1:] == found.encode("<image>a")[1:]


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word", "normalized", "special"])
def test_a_flag_that_is_none_is_named(tmp_path: Path, flag: str) -> None:
    with pytest.raises(ConfigError, match=rf"bos_token\.{flag}") as raised:
        sentencepiece(tmp_path, bos_token={"content": "<s>", flag: "yes"})
    assert raised.value.field == f"bos_token.{flag}"


def test_ids_of_a_tokenizer_json_that_are_stated_otherwise_are_named(tmp_path: Path) -> None:
    tokenizer_json(tmp_path)
    with pytest.raises(ConfigError, match="'thin' has the id 259") as raised:
        read(tmp_path, added_tokens_decoder={"260": TOKENS[2]})
    assert raised.value.field == "added_tokens_decoder.260" and "tokenizer.json" in str(raised.value.file)


@pytest.mark.oracle
@pytest.mark.sample
@pytest.mark.parametrize("make", [sentencepiece, tokenizer_json])
def test_transformers_finds_the_same(tmp_path: Path, make: Any) -> None:
    transformers = pytest.importorskip("transformers")
    found = make(tmp_path, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in [*(text for text, _ in CASES), "a in g", "in ga", "<left><right>", "thin", "a </s> a"]:
        assert found.encode(text) == reference.encode(text), text
