"""Tokenizers from a model's own files; streaming that never splits a character."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers

from tests import smollm2
from tests.runtime.models import add_tokenizer, byte_tokenizer
from tests.vocabularies import AS_IS, LLAMA, llama_like, sentencepiece_bytes
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.engine.gguf import read_gguf
from weightloom.runtime.gguf.tokenizer import gguf_tokenizer
from weightloom.runtime.tokenizing.streaming import stream_text
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer

TEXTS = [
    *("plain", "größe", "東京 3.14", "e\u0301 combining", "\u200dx", "a\ufffdb", "\ufffd", "", "नमस्ते"),
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 family",
    "\U0001f3f3\ufe0f\u200d\U0001f308",
]
any_text = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(TEXTS)


def byte_fallback() -> tokenizers.Tokenizer:
    """A vocabulary of SentencePiece's kind: some words with their space, and a token for each byte."""
    words = ["<unk>", "▁a", "▁", "東", "e", "x", "▁the"]
    vocab = {word: number for number, word in enumerate(words)}
    vocab |= {f"<0x{byte:02X}>": len(words) + byte for byte in range(256)}
    made = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>", byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    return made


BACKENDS = {"bytes": byte_tokenizer(), "fallback": byte_fallback()}


WORD_PIECE = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
ENDS = {"single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}], "pair": [{"Sequence": {"id": "B", "type_id": 0}}]}


def assert_streams(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> None:
    pieces = list(tokenizer.stream(iter(ids)))
    assert "".join(pieces) == text
    assert all(pieces)
    # A character cut in two would show as replacement characters on both sides of the cut.
    assert sum(piece.count("\ufffd") for piece in pieces) == text.count("\ufffd")


@pytest.mark.parametrize("name", BACKENDS)
@given(text=any_text)
def test_pieces_are_whole_characters_and_make_the_text(name: str, text: str) -> None:
    tokenizer = Tokenizer(BACKENDS[name])
    ids = tokenizer.encode(text)
    assert_streams(tokenizer, ids, tokenizer.decode(ids))


@given(st.lists(st.integers(0, 255), max_size=30))
def test_bytes_that_are_no_text_come_out_once_each_way(ids: list[int]) -> None:
    tokenizer = Tokenizer(BACKENDS["bytes"])
    assert_streams(tokenizer, ids, tokenizer.decode(ids))


@given(st.lists(st.integers(0, 262), max_size=30))
def test_no_ids_break_the_stream(ids: list[int]) -> None:
    tokenizer = Tokenizer(BACKENDS["fallback"])
    assert all(tokenizer.stream(iter(ids)))


@pytest.mark.parametrize("name", BACKENDS)
def test_a_character_of_several_tokens_comes_with_its_last(name: str) -> None:
    tokenizer = Tokenizer(BACKENDS[name])
    ids = tokenizer.encode("a👩")
    seen: list[int] = []
    pieces = []
    for piece in tokenizer.stream(seen.append(number) or number for number in ids):  # type: ignore[func-returns-value]
        pieces.append((piece, len(seen)))
    assert pieces[-1] == ("👩", len(ids)) and "\ufffd" not in "".join(piece for piece, _ in pieces)


@pytest.mark.parametrize("text", ["e\u0301", "\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea"])
def test_what_joins_a_character_comes_when_it_comes(text: str) -> None:
    """A code point is a character here; a mark that follows one does not hold it back."""
    tokenizer = Tokenizer(BACKENDS["bytes"])
    assert list(tokenizer.stream(iter(tokenizer.encode(text)))) == list(text)


def test_text_comes_as_soon_as_it_is_whole() -> None:
    def endless() -> object:
        yield from (BACKENDS["bytes"].encode("ab").ids * 1000)

    stream = stream_text(endless(), Tokenizer(BACKENDS["bytes"]).decode)  # type: ignore[arg-type]
    assert [next(stream) for _ in range(3)] == ["a", "b", "a"]


def test_special_tokens_are_not_text() -> None:
    tokenizer = Tokenizer(byte_tokenizer())
    ids = [256, *tokenizer.encode("é"), 257]
    assert "".join(tokenizer.stream(iter(ids))) == "é"


def test_what_the_files_say(tmp_path: Path) -> None:
    add_tokenizer(tmp_path, bos_token="<s>", add_prefix_space=False)
    found = load_tokenizer(tmp_path)
    assert found is not None and found.stop_ids == {257} and found.special == {"bos_token": "<s>", "eos_token": "</s>"}
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 7}))
    assert load_tokenizer(tmp_path).stop_ids == {7, 257}  # type: ignore[union-attr]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [8, 9]}))
    assert load_tokenizer(tmp_path).stop_ids == {7, 8, 9, 257}  # type: ignore[union-attr]
    assert load_tokenizer(tmp_path / "nothing here") is None


def test_padding_and_truncation_of_the_file_are_set_aside(tmp_path: Path) -> None:
    made = byte_tokenizer()
    made.enable_padding(length=16)
    made.enable_truncation(3)
    made.save(str(tmp_path / "tokenizer.json"))
    found = load_tokenizer(tmp_path)
    assert found is not None and len(found.encode("hello")) == 5


def test_cutting_keeps_the_closing_token(tmp_path: Path) -> None:
    from tokenizers.processors import TemplateProcessing

    made = byte_tokenizer()
    made.post_processor = TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 256), ("</s>", 257)])
    tokenizer = Tokenizer(made)
    whole = tokenizer.encode("abcdef")
    assert tokenizer.encode_batch(["abcdef", "a"], 5) == [[*whole[:4], 257], tokenizer.encode("a")]
    assert Tokenizer(byte_tokenizer()).encode_batch(["abcdef"], 3) == [byte_tokenizer().encode("abc").ids]


@pytest.mark.case("C79")
def test_a_config_that_no_model_has_is_no_matter(tmp_path: Path) -> None:
    """C79."""
    add_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "never_heard_of", "rope_parameters": [1, {}], "x": NaN}')
    found = load_tokenizer(tmp_path)
    assert found is not None and found.decode(found.encode("größe")) == "größe"


@pytest.mark.case("C79")
@pytest.mark.parametrize(("stated", "before", "after"), [("T5Tokenizer", [], [2]), ("LlamaTokenizer", [1], [])])
def test_of_the_config_the_class_alone_is_needed(
    tmp_path: Path, stated: str, before: list[int], after: list[int]
) -> None:
    """C79: a SentencePiece model does not say what goes around a text, and nothing else is asked of the config."""
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_bytes(llama_like(), LLAMA, AS_IS))
    odd = {"model_type": "never_heard_of", "rope_parameters": {"rope_type": 5}, "head_dim": None, "vocab_size": "many"}
    (tmp_path / "config.json").write_text(json.dumps({**odd, "tokenizer_class": stated}))
    found = load_tokenizer(tmp_path)
    assert found is not None
    assert found.encode("the") == [*before, found.backend.token_to_id("▁the"), *after]


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    add_tokenizer(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("model", {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"a": 0}, **WORD_PIECE}),
        ("model", {"type": "Unigram", "unk_id": 9, "vocab": [["a", 1]]}),
        ("post_processor", {"type": "TemplateProcessing", **ENDS, "special_tokens": {}}),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    ],
)
def test_files_that_fail_at_the_first_text_are_named(tmp_path: Path, part: str, content: dict[str, object]) -> None:
    file = add_tokenizer(tmp_path) / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), part: content}))
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("ids", [[-1], [2**70], ["a"]])
def test_what_are_no_ids_are_refused(ids: list[int]) -> None:
    with pytest.raises(UsageError, match="have no text") as raised:
        Tokenizer(byte_tokenizer()).decode(ids)
    assert raised.value.field == "ids"


def test_half_characters_are_refused() -> None:
    with pytest.raises(UsageError, match="Unicode"):
        Tokenizer(byte_tokenizer()).encode("a\ud800")


@pytest.fixture(scope="module")
def trained(request: pytest.FixtureRequest) -> Tokenizer:
    return gguf_tokenizer(read_gguf(smollm2.fetch(request.config.cache.mkdir("smollm2"))))


@pytest.mark.real
@given(text=any_text)
def test_a_trained_tokenizer_streams_every_text(trained: Tokenizer, text: str) -> None:
    ids = trained.encode(text)
    assert_streams(trained, ids, trained.decode(ids))


@pytest.mark.real
@given(ids=st.lists(st.integers(0, 49151), max_size=40))
def test_a_trained_tokenizer_streams_any_ids(trained: Tokenizer, ids: list[int]) -> None:
    assert_streams(trained, ids, trained.decode(ids))
