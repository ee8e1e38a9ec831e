"""tokenizer.json with anything wrong with it: only a WeightloomError escapes, at the load or after."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tests.runtime.models import byte_tokenizer
from tests.strategies.mutations import junk, mutated
from weightloom.engine.errors import ConfigError, WeightloomError
from weightloom.runtime.tokenizing import tokenizer
from weightloom.runtime.tokenizing.tokenizer import load_tokenizer


def unigram() -> Tokenizer:
    made = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -2.0), ("ab", -2.5), ("▁", -3.0)], 0, False))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" ", "▁")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing("a $A", special_tokens=[("a", 1)])
    return made


def word_piece() -> Tokenizer:
    vocabulary = {"[UNK]": 0, "a": 1, "##b": 2, "[CLS]": 3, "[SEP]": 4}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 4), ("[CLS]", 3))
    return made


def byte_fallback() -> Tokenizer:
    made = Tokenizer(models.BPE(vocab={"a": 0, "b": 1, "ab": 2, "<0x0A>": 3}, merges=[("a", "b")], byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"\p{N}{1,3}|\s+(?!\S)"), "isolated")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return made


MADE = (byte_tokenizer(), unigram(), word_piece(), byte_fallback())
BASES: list[dict[str, Any]] = [json.loads(made.to_str()) for made in MADE]
WORDS = ["a", "</s>", "[", "(a+)+$", ["a", "b"], ["a", -1], "Sequence", "ByteLevel", "Split", {"String": "a"}]
TEXTS = ["", "a b ab\n", "größe 東京 😀", "</s><s>[UNK]  1234", "\x00\u200d\ufffd"]


# Cheap enough for more than others get of the `thorough` profile.
@settings(max_examples=20_000 if settings.get_current_profile_name() == "thorough" else 200)
@given(content=mutated(BASES, junk(*WORDS), ["type", "vocab", "merges", "unk_token", "pattern"]))
def test_only_named_errors_escape(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzzed"
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with contextlib.suppress(WeightloomError):
        found = load_tokenizer(folder)
        assert found is not None
        for text in TEXTS:
            assert isinstance("".join(found.stream(found.encode(text))), str)
        found.decode([0, 1, 2, 999, 3, 0])


def test_a_vocabulary_that_fails_at_a_later_text_is_named() -> None:
    made = word_piece()
    lacking = json.loads(made.to_str())
    lacking["model"]["unk_token"] = "[GONE]"
    found = tokenizer.Tokenizer(Tokenizer.from_str(json.dumps(lacking)))
    assert found.encode("ab", add_special_tokens=False) == [1, 2]
    with pytest.raises(ConfigError, match=r"fails at the text 'xyz'.*\[UNK\]"):
        found.encode("xyz")
