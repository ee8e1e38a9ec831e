"""Published vocabularies: the ids of the publisher's own library, from a file and, for any text, from itself."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import mistral_files
from tests.golden.mistral_ids import GOLDEN
from tests.runtime.tokenizing.same_ids import assert_same_ids, assume_plain
from weightloom.runtime.tokenizing.byte_vocabulary import byte_backend
from weightloom.runtime.tokenizing.sentencepiece_backend import sentencepiece_backend
from weightloom.runtime.tokenizing.sentencepiece_model import read_sentencepiece
from weightloom.runtime.tokenizing.tekken import read_tekken
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer

KNOWN = json.loads(GOLDEN.read_text(encoding="utf-8"))
Published = tuple[Tokenizer, dict[str, Any]]


@pytest.fixture(scope="module", params=mistral_files.FILES)
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """The tokenizer of a directory that has one of the files and nothing else, and what is known of that file."""
    directory = tmp_path_factory.mktemp("published")
    folder = mistral_files.fetch(request.config.cache.mkdir("mistral"))
    (directory / request.param).symlink_to(folder / request.param)
    found = load_tokenizer(directory)
    assert found is not None
    return found, KNOWN["files"][request.param]


@pytest.mark.real
def test_texts_have_the_ids_of_mistral_common(published: Published) -> None:
    made, known = published
    assert made.backend.get_vocab_size() == known["size"]
    assert [made.encode(text) for text in KNOWN["texts"]] == known["ids"]


@pytest.mark.real
def test_a_conversation_has_the_ids_of_mistral_common(published: Published) -> None:
    made, known = published
    assert made.encode(known["conversation"]["text"], add_special_tokens=False) == known["conversation"]["ids"]


@pytest.mark.real
def test_texts_come_back_and_stream(published: Published) -> None:
    made, known = published
    for text, ids in zip(KNOWN["texts"], known["ids"], strict=True):
        assert "".join(made.stream(iter(ids))) == made.decode(ids)
        assert made.decode(ids).replace("▁", " ") == text.replace("▁", " ")


def installed(pattern: str) -> list[Path]:
    """The files of the library, where it is installed (the `vocabularies` extra)."""
    found = find_spec("mistral_common")
    folders = [] if found is None else found.submodule_search_locations or []
    return sorted(file for folder in folders for file in (Path(folder) / "data").glob(pattern))


@pytest.mark.oracle
@pytest.mark.parametrize("file", installed("*.model*"), ids=lambda file: file.name)
def test_any_text_has_the_ids_of_sentencepiece(file: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    reference = sentencepiece.SentencePieceProcessor(str(file))
    backend = sentencepiece_backend(read_sentencepiece(file))
    assert backend.get_vocab_size() == len(reference)
    assert_same_ids(reference, backend)


TEXTS = [
    "hello",
    "the",
    " ",
    "  ",
    "\n",
    "\t",
    "東京",
    "é",
    "0",
    "12345",
    "==",
    "'ll",
    "ing",
    "ß",
    "😀",
    "A",
    "\r\n",
    "अ",
]
mixed = st.lists(st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=4), max_size=8).map("".join)


@pytest.mark.oracle
@pytest.mark.parametrize("file", installed("tekken*.json"), ids=lambda file: file.name)
def test_any_text_has_the_ids_of_the_tekkenizer(file: Path) -> None:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    reference: Any = Tekkenizer.from_file(file)
    backend = byte_backend(read_tekken(file))
    assert [backend.id_to_token(number) for number in range(1000)] == [reference.id_to_piece(n) for n in range(1000)]

    @given(text=mixed)
    def same(text: str) -> None:
        assume_plain(backend, text)
        ids = reference.encode(text, bos=False, eos=False)
        assert backend.encode(text, add_special_tokens=False).ids == ids
        assert backend.decode(ids) == reference.decode(ids)

    same()
