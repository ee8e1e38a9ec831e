"""SentencePiece models: read strictly, and the same ids as sentencepiece gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.tokenizing.same_ids import assert_same_ids
from tests.vocabularies import (
    AS_IS,
    CONTROL,
    LLAMA,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    block,
    character_map,
    llama_like,
    number,
    piece,
    sentencepiece_bytes,
)
from weightloom.engine.errors import ConfigError
from weightloom.runtime.tokenizing.sentencepiece_backend import sentencepiece_backend
from weightloom.runtime.tokenizing.sentencepiece_model import read_sentencepiece
from weightloom.runtime.tokenizing.tokenizer import load_tokenizer


def backend(folder: Path, data: bytes) -> tokenizers.Tokenizer:
    file = folder / "tokenizer.model"
    file.write_bytes(data)
    return sentencepiece_backend(read_sentencepiece(file))


def spelled(made: tokenizers.Tokenizer, text: str) -> list[str]:
    return list(made.encode(text, add_special_tokens=False).tokens)


def test_pieces_merge_by_score_and_other_characters_are_bytes(tmp_path: Path) -> None:
    made = backend(tmp_path, sentencepiece_bytes(llama_like(), LLAMA, AS_IS))
    assert spelled(made, "the thing") == ["▁the", "▁t", "h", "ing"]
    assert spelled(made, "é") == ["▁", "<0xC3>", "<0xA9>"]
    assert made.decode(made.encode(" the é").ids) == " the é"


def test_the_prefix_goes_before_a_space_but_not_before_nothing_or_after_a_special_token(tmp_path: Path) -> None:
    made = backend(tmp_path, sentencepiece_bytes(llama_like(), LLAMA, AS_IS))
    assert spelled(made, " t") == ["▁", "▁t"] and spelled(made, "") == []
    assert spelled(made, "<s>t</s>t") == ["<s>", "t", "</s>", "t"]


def test_runs_of_spaces_become_one_by_default(tmp_path: Path) -> None:
    made = backend(tmp_path, sentencepiece_bytes(llama_like(), LLAMA))
    assert spelled(made, "  the   t ") == ["▁the", "▁t"] and spelled(made, "   ") == []
    bare = backend(tmp_path, sentencepiece_bytes(llama_like(), LLAMA, {3: 0}))
    assert spelled(bare, "  the   t ") == ["t", "he", "▁t"]


def test_unigram_takes_the_likeliest_pieces(tmp_path: Path) -> None:
    scores = {"▁": -3, "a": -3, "b": -3, "▁a": -4, "ab": -2, "▁ab": -9}
    pieces = [piece("<unk>", 0, UNKNOWN), *(piece(text, score) for text, score in scores.items())]
    made = backend(tmp_path, sentencepiece_bytes(pieces))
    assert spelled(made, "ab a") == ["▁", "ab", "▁a"]
    assert made.encode("xy").ids == [1, 0]


def test_pieces_of_the_user_are_whole(tmp_path: Path) -> None:
    further = [piece("<t>", 0, USER_DEFINED), piece("▁▁", 0, USER_DEFINED)]
    made = backend(tmp_path, sentencepiece_bytes(llama_like(*further), LLAMA, {**AS_IS, 3: 0}))
    assert spelled(made, "th<t>e  e") == ["t", "h", "<t>", "e", "▁▁", "e"]


def mapped(characters: bytes) -> bytes:
    scores = {"▁": -3, "a": -3, "b": -3}
    pieces = [piece("<unk>", 0, UNKNOWN), *(piece(text, score) for text, score in scores.items())]
    return sentencepiece_bytes(pieces) + block(3, block(2, characters))


def test_characters_are_replaced_by_the_map(tmp_path: Path) -> None:
    assert spelled(backend(tmp_path, mapped(character_map())), "aba") == ["▁", "b", "b", "b"]


places = st.sampled_from([0, 2, 4, 5, 6, 7, 4 + 4 * 0x161, 5 + 4 * 0x161, 6 + 4 * 0x161, 4 + 4 * 0x1F0, 2052]) | (
    st.integers(0, len(character_map()) - 1)
)


@given(changes=st.lists(st.tuples(places, st.integers(0, 255)), max_size=3), gone=st.integers(0, 3))
def test_no_map_leads_out_of_itself(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], gone: int
) -> None:
    data = bytearray(character_map())
    for at, byte in changes:
        data[at] = byte
    try:
        made = backend(tmp_path_factory.getbasetemp(), mapped(bytes(data[: len(data) - gone])))
    except ConfigError:
        return
    assert isinstance(spelled(made, "aba é \x01\xff"), list)


UNIGRAM = [piece("<unk>", 0, UNKNOWN), piece("a", -1.0)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no pieces"),
        (b"\x0a\x05abc", "5 bytes wanted"),
        (b"\xff" * 12, "more than 10 bytes"),
        (b"\x0b", "wire type 3"),
        (number(1, 5), "wire type 0"),
        (block(1, b"\x0a\x01\xff"), "utf-8"),
        (sentencepiece_bytes([*UNIGRAM, piece("a")]), "twice"),
        (sentencepiece_bytes([*UNIGRAM, piece("")]), "empty"),
        (sentencepiece_bytes([piece("a")]), "unknown"),
        (sentencepiece_bytes([*UNIGRAM, piece("b", 0, UNKNOWN)]), "unknown"),
        (sentencepiece_bytes([*UNIGRAM, piece("b", 0, UNUSED)]), "not used"),
        (sentencepiece_bytes([*UNIGRAM, piece("b", 0, 9)]), "unknown type"),
        (sentencepiece_bytes([*UNIGRAM, piece("b", float("nan"))]), "no number"),
        (sentencepiece_bytes(UNIGRAM, {3: 4}), "algorithm is 4"),
        (sentencepiece_bytes(UNIGRAM, {35: 1}), "bytes are not all there"),
        (sentencepiece_bytes(UNIGRAM, {24: 1}), "after words"),
        (sentencepiece_bytes(UNIGRAM, None, {5: 0}), "kept as they are"),
        (sentencepiece_bytes(UNIGRAM, None, {2: 1}), "wire type"),
        (sentencepiece_bytes(UNIGRAM) + block(3, block(2, b"no map")), "a trie of"),
    ],
)
def test_what_is_no_model_is_a_named_error(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        backend(tmp_path, data)
    assert raised.value.file == str(tmp_path / "tokenizer.model")


WHOLE = sentencepiece_bytes(llama_like(piece("<t>", 0, USER_DEFINED)), LLAMA, AS_IS)


@given(at=st.integers(0, len(WHOLE) - 1), new=st.binary(max_size=3), gone=st.integers(0, 4))
def test_no_bytes_bring_another_error(tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, gone: int) -> None:
    try:
        made = backend(tmp_path_factory.getbasetemp(), WHOLE[:at] + new + WHOLE[at + gone :])
    except ConfigError:
        return
    assert isinstance(spelled(made, "the thing é"), list)


MODELS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram"},
    "unigram as T5": {"model_type": "unigram", "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "unigram of bytes": {
        "model_type": "unigram",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
    "unigram without case": {"model_type": "unigram", "normalization_rule_name": "nfkc_cf"},
    "bpe": {"model_type": "bpe"},
    "bpe as Gemma": {
        "model_type": "bpe",
        "byte_fallback": True,
        "add_dummy_prefix": False,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "user_defined_symbols": ["<tok>", "▁▁", "▁▁▁▁", "\n", "<x y>"],
        "split_digits": True,
    },
}


@pytest.fixture(scope="module", params=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, tokenizers.Tokenizer]:
    """The same trained model in sentencepiece and here."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("trained")
    text = Path(__file__).read_text(encoding="utf-8") + "hello größe 東京 é of the ing aaa aaaa aaaaa ==\n" * 30
    (folder / "text").write_text(text, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"),
        model_prefix=str(folder / "m"),
        vocab_size=700,
        hard_vocab_limit=False,
        minloglevel=2,
        **MODELS[request.param],
    )
    file = folder / "m.model"
    return sentencepiece.SentencePieceProcessor(str(file)), sentencepiece_backend(read_sentencepiece(file))


@pytest.mark.oracle
def test_trained_models_give_the_ids_of_sentencepiece(pair: tuple[Any, tokenizers.Tokenizer]) -> None:
    assert_same_ids(*pair)


@pytest.mark.oracle
@pytest.mark.sample
def test_a_t5_model_gives_the_ids_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    scored = {"▁": -2.0, "a": -3.0, "b": -3.5, "▁a": -2.5, "ab": -4.0, "<": -6.0}
    special = [piece("<pad>", 0, CONTROL), piece("</s>", 0, CONTROL), piece("<unk>", 0, UNKNOWN)]
    pieces = [*special, *(piece(text, score) for text, score in scored.items())]
    (tmp_path / "spiece.model").write_bytes(sentencepiece_bytes(pieces, {41: -1, 42: 1, 43: 0}))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    (tmp_path / "config.json").write_text("{}")
    reference = transformers.T5Tokenizer.from_pretrained(tmp_path)
    found = load_tokenizer(tmp_path)
    assert found is not None and found.backend.get_vocab_size() == len(reference)
    for text in ["ab a", "  a  b ", "a<extra_id_3> b<extra_id_0>", "", "xyz a"]:
        assert found.encode(text) == reference.encode(text)
