"""tekken.json and .tiktoken: the ids of plain merging by rank, and of mistral-common and tiktoken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.tokenizing.same_ids import assume_plain
from tests.vocabularies import merged, ranked, tekken, tiktoken_bytes, write_tekken
from weightloom.engine.errors import ConfigError
from weightloom.runtime.tokenizing.byte_vocabulary import byte_backend, spell
from weightloom.runtime.tokenizing.tekken import read_tekken
from weightloom.runtime.tokenizing.tiktoken_file import is_tiktoken, read_tiktoken, tiktoken_kind
from weightloom.runtime.tokenizing.tiktoken_kinds import KINDS
from weightloom.runtime.tokenizing.tokenizer import load_tokenizer

RANKS = {token: rank for rank, token in enumerate(ranked())}
TEXTS = ["the thing", "aaaaa", "東京 x", "a\u0301", " 12 12", "don't DON'T", "\r\n \n", "HeLLo", "\u3000\x85", "½Ⅷ"]
mixed = st.lists(st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=4), max_size=8).map("".join)


def test_bytes_are_spelled_as_in_byte_level_vocabularies() -> None:
    from tokenizers import pre_tokenizers

    assert {spell(bytes([byte])) for byte in range(256)} == set(pre_tokenizers.ByteLevel.alphabet())
    assert spell(b" \n\xe6") == "ĠĊæ"


@given(text=mixed)
def test_tekken_gives_the_ids_of_plain_merging(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    made = byte_backend(read_tekken(write_tekken(tmp_path_factory.getbasetemp()) / "tekken.json"))
    assume_plain(made, text)
    words = regex.findall(tekken()["config"]["pattern"], text)
    wanted = [10 + number for word in words for number in merged(word.encode(), RANKS)]
    if "".join(words) == text:
        assert made.encode(text).ids == wanted
    assert made.decode(made.encode(text).ids) == text


def test_special_tokens_come_first_and_unnamed_ones_have_numbers(tmp_path: Path) -> None:
    found = load_tokenizer(write_tekken(tmp_path))
    assert found is not None and found.stop_ids == {2} and found.special["bos_token"] == "<s>"
    assert found.encode("[INST]a") == [1, 3, 10 + ord("a")]
    assert found.backend.id_to_token(9) == "<SPECIAL_9>"
    assert found.decode(found.encode("the thing")) == "the thing"


def test_files_that_state_no_special_tokens_have_the_first_ones(tmp_path: Path) -> None:
    content = tekken(special_tokens=None)
    content["config"] |= {"default_num_special_tokens": 20, "default_vocab_size": len(ranked()) + 20}
    (tmp_path / "tekken.json").write_text(json.dumps(content))
    assert read_tekken(tmp_path / "tekken.json").special["[IMG]"] == 10


def config(**changes: Any) -> dict[str, Any]:
    return {"config": {**tekken()["config"], **changes}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"config": None}, "config is"),
        ({"config": [1]}, "config is"),
        (config(pattern=None), "config.pattern"),
        (config(pattern="("), "makes no tokenizer"),
        (config(default_vocab_size="9"), "config.default_vocab_size"),
        (config(default_vocab_size=-1), "config.default_vocab_size"),
        (config(default_vocab_size=10), "tokens for"),
        (config(default_vocab_size=99999), "tokens for"),
        (config(default_num_special_tokens=2, default_vocab_size=260), "special tokens"),
        ({"vocab": None}, "vocab"),
        ({"vocab": [{"rank": []}]}, "rank of vocab"),
        ({"vocab": tekken()["vocab"][1:]}, "ranks that leave"),
        ({"vocab": [{**entry, "token_bytes": "YQ=="} for entry in tekken()["vocab"]]}, "bytes that are no tokens"),
        ({"vocab": [{**entry, "token_bytes": "*"} for entry in tekken()["vocab"]]}, "base64"),
        ({"vocab": [{**entry, "token_bytes": None} for entry in tekken()["vocab"]]}, "base64"),
        ({"special_tokens": {"a": 1}}, "special_tokens"),
        ({"special_tokens": [{"rank": 0, "token_str": 5}]}, "special tokens"),
        ({"special_tokens": [{"rank": 0, "token_str": "a"}]}, "both special and not"),
        ({"special_tokens": [{"rank": 0, "token_str": "<a>"}, {"rank": 1, "token_str": "<a>"}]}, "twice"),
        ({"special_tokens": [{"rank": 0, "token_str": "<a>"}, {"rank": 0, "token_str": "<b>"}]}, "twice"),
    ],
)
def test_what_is_no_tekken_is_a_named_error(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        load_tokenizer(write_tekken(tmp_path, **changes))
    assert raised.value.file == str(tmp_path / "tekken.json")


def write_tiktoken(folder: Path, name: str, **settings: Any) -> Path:
    (folder / name).write_bytes(tiktoken_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("name", "settings", "first"),
    [
        ("qwen.tiktoken", {}, []),
        ("other.tiktoken", {"tokenizer_class": "QWenTokenizer"}, []),
        ("tokenizer.model", {}, [len(RANKS)]),
        ("tiktoken.model", {}, []),
        ("tiktoken.model", {"add_bos_token": True}, [len(RANKS)]),
    ],
)
def test_each_publishers_tokens_follow_the_ranked_ones(
    tmp_path: Path, name: str, settings: dict[str, Any], first: list[int]
) -> None:
    found = load_tokenizer(write_tiktoken(tmp_path, name, **settings))
    assert found is not None
    wanted = [number for word in [b"aaaaa", b" the"] for number in merged(word, RANKS)]
    assert found.encode("aaaaa the") == [*first, *wanted]
    assert found.decode(found.encode("東京 größe")) == "東京 größe"
    assert min(found.backend.get_added_tokens_decoder()) == len(RANKS)


def test_stated_special_tokens_take_the_place_of_the_usual_ones(tmp_path: Path) -> None:
    stated = {str(len(RANKS) + 4): {"content": "<|im_end|>", "special": True}}
    settings = {"added_tokens_decoder": stated, "eos_token": "<|im_end|>"}
    found = load_tokenizer(write_tiktoken(tmp_path, "tiktoken.model", **settings))
    assert found is not None and found.stop_ids == {len(RANKS) + 4} and found.encode("<|im_end|>") == [len(RANKS) + 4]


def test_a_publisher_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not known how") as raised:
        load_tokenizer(write_tiktoken(tmp_path, "other.tiktoken"))
    assert "Qwen" in str(raised.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tiktoken_bytes(ranked()[1:]), "bytes that are no tokens"),
        (tiktoken_bytes([*ranked(), b"th"]), "twice"),
        (b"YQ== 0\nYg== 2\n", "line 2 has the rank 2"),
        (b"YQ== 0\nY g== 1\n", "line 2 is"),
        (b"YQ== 0\nYQ=== 1\n", "line 2 is"),
        (b"YQ== 0\nYQQ 1\n", "base64"),
        (b"YQ== 0\n\n", "line 2"),
    ],
)
def test_what_is_no_tiktoken_file_is_a_named_error(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "qwen.tiktoken").write_bytes(data)
    with pytest.raises(ConfigError, match=words):
        load_tokenizer(tmp_path)


@given(at=st.integers(0, 4000), new=st.binary(max_size=3), gone=st.integers(0, 4))
def test_no_bytes_bring_another_error(tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, gone: int) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name, data in {
        "qwen.tiktoken": tiktoken_bytes(),
        "tekken.json": json.dumps(tekken()).encode(),
    }.items():
        file = folder / name
        file.write_bytes(data[:at] + new + data[at + gone :])
        try:
            read = read_tekken(file) if name == "tekken.json" else read_tiktoken(file, KINDS[0], {})
            byte_backend(read)
        except ConfigError:
            continue


def test_lists_of_ranks_are_told_from_models() -> None:
    assert is_tiktoken(b"IQ== 0\nIg== 1\n") and not is_tiktoken(b"\n\x0e\n\x05<unk>") and not is_tiktoken(b"")


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_tiktoken_gives_the_same_ids(tmp_path: Path, kind: Any) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    file = tmp_path / min(kind.files)
    file.write_bytes(tiktoken_bytes())
    assert tiktoken_kind(file, None) is kind
    made = byte_backend(read_tiktoken(file, kind, {}))
    reference = tiktoken.Encoding("x", pat_str=PATTERNS[kind.name], mergeable_ranks=RANKS, special_tokens={})

    @given(text=mixed)
    def same(text: str) -> None:
        assume_plain(made, text)
        prepared = text if made.normalizer is None else made.normalizer.normalize_str(text)
        assert made.encode(text, add_special_tokens=False).ids == reference.encode_ordinary(prepared)

    same()


_CAPITALS, _SMALL = (rf"[\p{{{case}}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]" for case in (r"Lu}\p{Lt", "Ll"))
_TAILS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "Qwen": rf"{_TAILS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}",
    "Llama 3": rf"{_TAILS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}",
    "Kimi": "|".join(
        [
            r"[\p{Han}]+",
            rf"[^\r\n\p{{L}}\p{{N}}]?{_CAPITALS}*{_SMALL}+{_TAILS}?",
            rf"[^\r\n\p{{L}}\p{{N}}]?{_CAPITALS}+{_SMALL}*{_TAILS}?",
            r"\p{N}{1,3}",
            _REST,
        ]
    ),
}
