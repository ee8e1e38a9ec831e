"""What goes around a text: a tokenizer.json says so itself, whatever tokenizer_config.json states."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tokenizers.processors import ByteLevel, Sequence, TemplateProcessing

from tests.runtime.models import byte_tokenizer
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer

TOKENS = [("<s>", 256), ("</s>", 257)]
FRAMES: dict[str, Any] = {
    "none": None,
    "bytes": ByteLevel(trim_offsets=False),
    "begin": TemplateProcessing("<s> $A", special_tokens=TOKENS),
    "both": Sequence([ByteLevel(trim_offsets=False), TemplateProcessing("<s> $A </s>", special_tokens=TOKENS)]),
}
BEGINS, ENDS = {"begin", "both"}, {"both"}


def framed(folder: Path, frame: str, **settings: Any) -> Tokenizer:
    made = byte_tokenizer()
    if FRAMES[frame] is not None:
        made.post_processor = FRAMES[frame]
    made.save(str(folder / "tokenizer.json"))
    content = {"bos_token": "<s>", "eos_token": "</s>", **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    found = load_tokenizer(folder)
    assert found is not None
    return found


def stated(begins: bool | None, ends: bool | None) -> dict[str, bool]:
    flags = {"add_bos_token": begins, "add_eos_token": ends}
    return {name: flag for name, flag in flags.items() if flag is not None}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(("begins", "ends"), [(None, None), *product([True, False], repeat=2)])
def test_the_frame_of_the_file_counts(tmp_path: Path, frame: str, begins: bool | None, ends: bool | None) -> None:
    found = framed(tmp_path, frame, **stated(begins, ends))
    assert found.encode("") == [*[256] * (frame in BEGINS), *[257] * (frame in ENDS)]


@pytest.mark.oracle
@pytest.mark.sample
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(("begins", "ends"), [(None, None), *product([True, False], repeat=2)])
def test_transformers_puts_the_same_around(tmp_path: Path, frame: str, begins: bool | None, ends: bool | None) -> None:
    transformers = pytest.importorskip("transformers")
    found = framed(tmp_path, frame, **stated(begins, ends))
    reference = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert found.encode("a b") == reference.encode("a b")
