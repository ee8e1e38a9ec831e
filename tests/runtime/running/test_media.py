"""Pictures, sound and video for a model of text: refused, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import add_tokenizer, runnable, vlm
from tests.runtime.support import Cli
from weightloom.engine.errors import UsageError
from weightloom.runtime import generate, load

TEMPLATE = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_tokenizer(runnable(tmp_path_factory.mktemp("text")), chat_template=TEMPLATE)


def message(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


WORDS = {"type": "text", "text": "what is this?"}


def test_an_image_to_a_text_only_model_is_refused_with_the_reason(cli: Cli, path: Path) -> None:
    m = load(path)
    with pytest.raises(UsageError) as raised:
        generate(m, "what is this?", images=["cat.png"])
    said = f"{path} was loaded without a vision tower (text-only checkpoint: vision_config is absent)"
    assert said in str(raised.value) and "cat.png" in str(raised.value) and raised.value.field == "images"
    ran = cli("generate", path, "-p", "what is this?", "--image", "cat.png")
    assert ran.code == 2 and said in ran.err and ran.out == ""


@pytest.mark.parametrize("kind", ["image", "image_url", "video", "audio", "input_audio"])
def test_so_is_a_part_of_a_message(path: Path, kind: str) -> None:
    m = load(path)
    for stream in (False, True):
        with pytest.raises(UsageError, match=f"type '{kind}'") as raised:
            generate(m, message(WORDS, {"type": kind, kind: "x"}), stream=stream)
        assert raised.value.field == "content"


def test_parts_of_text_are_a_prompt(path: Path) -> None:
    m = load(path)
    assert generate(m, message(WORDS), max_tokens=3) == generate(m, "what is this?", max_tokens=3)


def test_the_text_model_alone_says_what_was_left_out(tmp_path: Path) -> None:
    m = load(add_tokenizer(vlm(tmp_path)), text_only=True)
    with pytest.raises(UsageError, match="as its text model alone") as raised:
        generate(m, "what is this?", images=[tmp_path / "cat.png"])
    assert "vision_tower" in str(raised.value)
