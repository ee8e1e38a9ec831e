"""Whole conversations: the ids that mistral-common makes, from the text that it says they are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from weightloom.runtime.tokenizing.byte_vocabulary import byte_backend
from weightloom.runtime.tokenizing.sentencepiece_backend import sentencepiece_backend
from weightloom.runtime.tokenizing.sentencepiece_model import read_sentencepiece
from weightloom.runtime.tokenizing.tekken import read_tekken

TURNS = [
    ("user", "What's 5 + 5?\n\n  Answer in 日本語 – please."),
    ("assistant", "5 + 5 = 10。"),
    ("user", "def f(x):\n    return x  # größe"),
]


def published() -> list[Path]:
    found = find_spec("mistral_common")
    folders = [] if found is None else found.submodule_search_locations or []
    files = [file for folder in folders for file in (Path(folder) / "data").iterdir()]
    return sorted(file for file in files if ".model" in file.name or file.name.startswith("tekken"))


@pytest.mark.oracle
@pytest.mark.parametrize("file", published(), ids=lambda file: file.name)
def test_the_ids_of_a_conversation(file: Path) -> None:
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    messages: Any = [{"role": role, "content": content} for role, content in TURNS]
    reference = MistralTokenizer.from_file(str(file))
    wanted = reference.encode_chat_completion(ChatCompletionRequest(messages=messages))
    text = reference.decode(wanted.tokens, special_token_policy=SpecialTokenPolicy.KEEP)
    tekken = file.name.startswith("tekken")
    made = byte_backend(read_tekken(file)) if tekken else sentencepiece_backend(read_sentencepiece(file))
    # The decoder for SentencePiece spells spaces and line ends as its pieces do.
    plain = text.replace("▁", " ").replace("<0x0A>", "\n")
    assert made.encode(plain, add_special_tokens=False).ids == wanted.tokens
