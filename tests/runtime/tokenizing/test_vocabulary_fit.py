"""A tokenizer whose ids the model's embedding does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.models import runnable
from weightloom.engine.errors import UsageError
from weightloom.runtime import generate, load
from weightloom.runtime.tokenizing.vocabulary_fit import vocabulary_size


def test_tokens_without_a_row_are_named_at_the_load_and_refused_in_a_text(tmp_path: Path) -> None:
    m = load(runnable(tmp_path, vocab_size=257))
    assert m.notes == (
        "the tokenizer has 258 tokens and the embedding 257 rows: texts are refused that have '</s> (257)'",
    )
    assert isinstance(generate(m, "a", max_tokens=1), str)
    with pytest.raises(UsageError, match="token id 257") as raised:
        generate(m, "a</s>", max_tokens=1)
    assert raised.value.field == "vocab_size"


def test_rows_without_a_token_are_padding(tmp_path: Path) -> None:
    assert load(runnable(tmp_path, vocab_size=300)).notes == ()


def test_the_size_is_the_configs_or_the_text_models() -> None:
    assert vocabulary_size({"vocab_size": 3, "text_config": {"vocab_size": 4}}) == 3
    assert vocabulary_size({"text_config": {"vocab_size": 4}}) == 4
    assert vocabulary_size({"text_config": None}) is None and vocabulary_size({"vocab_size": True}) is None
