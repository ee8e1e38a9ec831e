from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.gguf_files import KEYS, array, write_gguf
from weightloom.engine.errors import ConfigError
from weightloom.engine.gguf import read_gguf
from weightloom.runtime.gguf.side_files import gguf_side_files
from weightloom.runtime.gguf.tokenizer import gguf_tokenizer
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer
from weightloom.runtime.tokenizing.word_splits import SPLITTINGS

G = "tokenizer.ggml."
# "Ġ" is how a byte-level vocabulary spells a space.
TOKENS = ["<|end|>", "<|im|>", "a", "b", "c", "Ġ", "ab", "Ġab", "abc", "1", "2", "12", "'", "s", "'s"]
BYTE_LEVEL: dict[str, Any] = {
    f"{G}model": "gpt2",
    f"{G}pre": "smollm",
    f"{G}tokens": TOKENS,
    f"{G}token_type": [3, 3] + [1] * (len(TOKENS) - 2),
    f"{G}merges": ["a b", "Ġ ab", "ab c", "1 2", "' s"],
    f"{G}bos_token_id": 1,
    f"{G}eos_token_id": 0,
}
PIECES = ["<unk>", "<s>", "</s>", "<0x0A>", "<0xC3>", "<0xA4>", "▁", "a", "b", "n", "▁a", "an", "▁an", "ban", "ana"]
SENTENCE_PIECE: dict[str, Any] = {
    f"{G}model": "llama",
    f"{G}tokens": PIECES,
    f"{G}scores": [0.0] * 6 + [-20.0, -21.0, -22.0, -23.0, -2.0, -1.0, -3.0, -5.0, -4.0],
    f"{G}token_type": [2, 3, 3, 6, 6, 6] + [1] * 9,
    f"{G}bos_token_id": 1,
    f"{G}eos_token_id": 2,
    f"{G}unknown_token_id": 0,
}


def made(folder: Path, keys: dict[str, Any], **changes: Any) -> Tokenizer:
    changed = {**keys, **{f"{G}{name}": value for name, value in changes.items()}}
    left = {key: value for key, value in changed.items() if value is not None}
    return gguf_tokenizer(read_gguf(write_gguf(folder / "m.gguf", left, [])))


def spelled(tokenizer: Tokenizer, text: str) -> list[str]:
    return [str(tokenizer.backend.id_to_token(number)) for number in tokenizer.encode(text)]


def test_merges_act_in_their_order(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL)
    assert spelled(tokenizer, "abc ab") == ["abc", "Ġab"]
    assert spelled(tokenizer, "cab's") == ["c", "ab", "'s"]
    assert tokenizer.decode(tokenizer.encode("abc ab")) == "abc ab"


def test_control_tokens_are_found_whole(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL)
    assert spelled(tokenizer, "<|im|>a<|end|>") == ["<|im|>", "a", "<|end|>"]
    assert tokenizer.decode(tokenizer.encode("<|im|>a<|end|>")) == "a"


def test_user_defined_tokens_are_whole_and_stay_in_the_text(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL, token_type=[3, 4] + [1] * (len(TOKENS) - 2))
    assert spelled(tokenizer, "ab<|im|>") == ["ab", "<|im|>"]
    assert tokenizer.decode(tokenizer.encode("ab<|im|>")) == "ab<|im|>"


@pytest.mark.parametrize(
    ("pre", "changes", "wanted"),
    [
        ("smollm", {}, ["ab"]),
        ("llama-bpe", {}, ["<|im|>", "ab"]),
        ("llama-bpe", {"add_bos_token": False}, ["ab"]),
        ("smollm", {"add_bos_token": True, "add_eos_token": True}, ["<|im|>", "ab", "<|end|>"]),
    ],
)
def test_what_is_put_around_a_text(tmp_path: Path, pre: str, changes: dict[str, Any], wanted: list[str]) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL, pre=pre, **changes)
    assert spelled(tokenizer, "ab") == wanted
    assert tokenizer.encode("ab", add_special_tokens=False) == [TOKENS.index("ab")]


WORDS = {
    "gpt-2": ["Hello", "Ġworld", "'s", "Ġ12345", "Ġ", "Ġx", "Ċ", "Ċ", "y", "!?"],
    "smollm": ["Hello", "Ġworld", "'s", "Ġ", "1", "2", "3", "4", "5", "Ġ", "Ġx", "Ċ", "Ċ", "y", "!?"],
    "qwen2": ["Hello", "Ġworld", "'s", "Ġ", "1", "2", "3", "4", "5", "Ġ", "Ġx", "ĊĊ", "y", "!?"],
    "llama-bpe": ["Hello", "Ġworld", "'s", "Ġ", "123", "45", "Ġ", "Ġx", "ĊĊ", "y", "!?"],
    "default": ["Hello", "Ġworld", "'", "s", "Ġ", "123", "45", "Ġ", "Ġx", "Ċ", "Ċ", "y", "!?"],
}


@pytest.mark.parametrize("pre", sorted(SPLITTINGS))
def test_words_before_merges(tmp_path: Path, pre: str) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL, pre=pre)
    words = [word for word, _ in tokenizer.backend.pre_tokenizer.pre_tokenize_str("Hello world's 12345  x\n\ny!?")]
    assert words == WORDS[pre]


def test_a_file_without_pre_is_split_as_default(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL, pre=None)
    assert [word for word, _ in tokenizer.backend.pre_tokenizer.pre_tokenize_str("12345")] == ["123", "45"]


def merged(text: str) -> list[str]:
    """SentencePiece's own way: of all neighbours that make a token, join the best, the leftmost of equals."""
    scores = dict(zip(PIECES, SENTENCE_PIECE[f"{G}scores"], strict=True))
    parts = list("▁" + text.replace(" ", "▁"))
    while True:
        pairs = [(-scores[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        if not pairs:
            return parts
        at = min(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@pytest.mark.parametrize("text", ["banana", "an", "a banana an", "nana ban", "aaan", "b", ""])
def test_scores_decide_merges(tmp_path: Path, text: str) -> None:
    tokenizer = made(tmp_path, SENTENCE_PIECE, add_bos_token=False)
    assert spelled(tokenizer, text) == (merged(text) if text else [])
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_unknown_characters_are_bytes_or_the_unknown_token(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, SENTENCE_PIECE)
    assert spelled(tokenizer, "ä\nz") == ["<s>", "▁", "<0xC3>", "<0xA4>", "<0x0A>", "<unk>"]
    assert tokenizer.decode(tokenizer.encode("aä\n")) == "aä\n"


def test_no_space_is_put_in_front_where_the_file_says_so(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, SENTENCE_PIECE, add_space_prefix=False)
    assert spelled(tokenizer, "an an") == ["<s>", "an", "▁an"]
    assert tokenizer.decode(tokenizer.encode(" an")) == " an"


@pytest.mark.parametrize(
    ("keys", "changes", "field", "words"),
    [
        (BYTE_LEVEL, {"model": "bert"}, "model", "one of gpt2, llama"),
        (BYTE_LEVEL, {"model": None}, "model", "there is no"),
        (BYTE_LEVEL, {"pre": "tekken"}, "pre", "'tekken'"),
        (BYTE_LEVEL, {"tokens": None}, "tokens", "there is no"),
        (BYTE_LEVEL, {"tokens": ["a", "a"]}, "tokens", "there twice: 'a'"),
        (BYTE_LEVEL, {"tokens": [1, 2]}, "tokens", "array of str"),
        (BYTE_LEVEL, {"token_type": [1]}, "token_type", "entries"),
        (BYTE_LEVEL, {"merges": ["ab"]}, "merges", "two parts"),
        (BYTE_LEVEL, {"merges": ["a zz"]}, "merges", "make no tokenizer"),
        (BYTE_LEVEL, {"merges": ["a 1"]}, "merges", "make no tokenizer"),
        (BYTE_LEVEL, {"eos_token_id": 99}, "eos_token_id", "number of tokens"),
        (BYTE_LEVEL, {"bos_token_id": None, "add_bos_token": True}, "bos_token_id", "added to every text"),
        (BYTE_LEVEL, {"add_bos_token": 1}, "add_bos_token", "true or false"),
        (SENTENCE_PIECE, {"scores": None}, "scores", "there is no"),
        (SENTENCE_PIECE, {"scores": [1.0]}, "scores", "entries"),
    ],
)
def test_what_is_refused(tmp_path: Path, keys: dict[str, Any], changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(tmp_path, keys, **changes)
    assert caught.value.field == f"{G}{field}"
    assert words in str(caught.value)


def test_ends_and_roles(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, BYTE_LEVEL, eot_token_id=2)
    assert tokenizer.stop_ids == {0, 2}
    assert tokenizer.special == {"bos_token": "<|im|>", "eos_token": "<|end|>"}


@pytest.mark.parametrize("keys", [BYTE_LEVEL, SENTENCE_PIECE], ids=["byte level", "sentence piece"])
@pytest.mark.parametrize("further", [{}, {"tokenizer.chat_template.tool_use": "t"}], ids=["one template", "two"])
def test_side_files_give_the_same_tokenizer(tmp_path: Path, keys: dict[str, Any], further: dict[str, str]) -> None:
    template = "{% for m in messages %}{{ bos_token + m.content }}{% endfor %}"
    extra = {"tokenizer.chat_template": template, **further, f"{G}eot_token_id": 3}
    path = write_gguf(tmp_path / "m.gguf", {**KEYS, **keys, **extra}, [array("token_embd.weight", [[0.0] * 64] * 2)])
    files = gguf_side_files(path)
    assert sorted(files) == ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
    for name, raw in files.items():
        (tmp_path / name).write_bytes(raw)
    direct, again = gguf_tokenizer(read_gguf(path)), load_tokenizer(tmp_path)
    assert again is not None
    for text in ("abc ab", "banana <s>an", "1212's", ""):
        assert direct.encode(text) == again.encode(text)
        assert direct.decode(direct.encode(text)) == again.decode(again.encode(text))
    assert (direct.stop_ids, direct.special) == (again.stop_ids, again.special)
    messages = [{"role": "user", "content": "x"}]
    assert (
        direct.apply_chat_template(messages) == again.apply_chat_template(messages) == f"{direct.special['bos_token']}x"
    )
    assert {name: each.text for name, each in direct.templates.items()} == {
        name: each.text for name, each in again.templates.items()
    }
    assert len(direct.templates) == 1 + len(further)
    assert json.loads(files["config.json"])["model_type"] == "llama"


def test_a_file_without_vocabulary_gives_a_config_alone(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", KEYS, [array("token_embd.weight", [[0.0] * 64] * 2)])
    assert list(gguf_side_files(path)) == ["config.json"]
