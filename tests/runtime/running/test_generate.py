"""generate: prompts of every kind, streaming, sampling, refusals; the command; a real model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from tests import smollm2
from tests.runtime.models import runnable, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime import LoadedModel, embed, generate, load
from weightloom.runtime.running.decoding import generate_ids
from weightloom.runtime.running.generation_prompt import prompt_ids
from weightloom.runtime.terminal.printing import visible

CASES = json.loads((Path(__file__).parents[1] / "smollm2_ref.json").read_text(encoding="utf-8"))["cases"]
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runnable(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def m(path: Path) -> LoadedModel:
    return load(path)


def naive(m: LoadedModel, ids: list[int], count: int) -> list[int]:
    """Greedy ids without a cache: the whole text again for every token."""
    found: list[int] = []
    for _ in range(count):
        logits = m.model(mx.array([[*ids, *found]]))[0, -1]
        found.append(int(mx.argmax(logits).item()))
    return found


def test_greedy_ids_are_those_of_the_whole_text_again(m: LoadedModel) -> None:
    ids = m.need_tokenizer().encode("hello")
    assert list(generate_ids(m, ids, 12)) == naive(m, ids, 12)


@pytest.mark.parametrize("name", ["mistral", "mixtral", "qwen3_moe"])
def test_every_decoder_generates_through_its_cache(tmp_path: Path, name: str) -> None:
    m = load(write_model(tmp_path, name))
    ids = list(range(5, 17))
    assert list(generate_ids(m, ids, 8)) == naive(m, ids, 8)


def test_a_prompt_longer_than_a_chunk_gives_the_same(m: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = m.need_tokenizer().encode("a prompt of several chunks")
    whole = list(generate_ids(m, ids, 5))
    monkeypatch.setattr("weightloom.runtime.running.decoding._PREFILL", 7)
    assert list(generate_ids(m, ids, 5)) == whole


def test_text_ids_and_stream_are_one_answer(m: LoadedModel) -> None:
    text = generate(m, "hello", 12)
    pieces = generate(m, "hello", 12, stream=True)
    assert isinstance(pieces, Iterator) and "".join(pieces) == text
    assert generate(m, m.need_tokenizer().encode("hello"), 12) == text
    assert generate(m, "hello", 0) == ""


def test_it_stops_at_the_end_of_text(tmp_path: Path, m: LoadedModel) -> None:
    ids = m.need_tokenizer().encode("hello")
    third = naive(m, ids, 3)[2]
    other = load(runnable(tmp_path, eos_token_id=[third, 3]))
    assert list(generate_ids(other, ids, 9)) == naive(m, ids, 9)[: naive(m, ids, 9).index(third)]


def test_messages_go_through_the_template(tmp_path: Path) -> None:
    runnable(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    m = load(tmp_path)
    messages = [{"role": "user", "content": "hi"}]
    assert prompt_ids(m, messages) == m.need_tokenizer().encode("<user>hi")
    assert generate(m, messages, 5) == generate(m, "<user>hi", 5)


def test_a_seed_repeats_and_temperature_varies(m: LoadedModel) -> None:
    first, again, other = (generate(m, "hello", 24, temperature=1.5, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ("", {}, "no tokens"),
        ([], {}, "no tokens"),
        ([1, "two"], {}, "holds 1"),
        ([{"role": "user", "content": "hi"}], {}, "no chat template"),
        ([260], {}, "token id 260"),
        ([-1], {}, "token id -1"),
        ("half \ud800", {}, "no tokens|Unicode"),
        ("hi", {"temperature": -1.0}, "temperature is -1"),
        ("hi", {"temperature": float("nan")}, "temperature is nan"),
        ("hi", {"max_tokens": -1}, "max_tokens is -1"),
    ],
)
def test_what_cannot_be_continued_is_refused(m: LoadedModel, prompt: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generate(m, prompt, **options)


def test_a_model_without_a_tokenizer_takes_and_gives_ids(tmp_path: Path) -> None:
    m = load(write_model(tmp_path, "llama"))
    with pytest.raises(ConfigError, match=r"no tokenizer\n.*tokenizer\.json"):
        generate(m, "hello")
    assert len(list(generate_ids(m, [1, 2, 3], 4))) == 4


def test_an_encoder_does_not_generate_and_a_decoder_does_not_embed(tmp_path: Path, m: LoadedModel) -> None:
    with pytest.raises(UsageError, match="bert is for embed"):
        generate(load(runnable(tmp_path, "bert")), "hello")
    with pytest.raises(UsageError, match="llama is for generate"):
        embed(m, ["hello"])


def test_the_command_streams_the_text(cli: Cli, path: Path, m: LoadedModel) -> None:
    ran = cli("generate", path, "-p", "hello", "--max-tokens", 6)
    shown = generate(m, "hello", 6)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == visible(shown) + "\n"
    data = cli("generate", path, "-p", "hello", "--max-tokens", 6, "--json").data
    assert data["text"] == shown and data["prompt"] == "hello" and data["notes"] == []


def test_the_command_takes_a_chat_and_says_what_was_set_aside(cli: Cli, tmp_path: Path) -> None:
    runnable(tmp_path)
    assert cli("generate", tmp_path, "-p", "hi", "--chat").code == 2
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "other"}))
    (tmp_path / "modeling.py").write_text("raise SystemExit(9)")
    ran = cli("generate", tmp_path, "-p", "hi", "--chat", "--max-tokens", 2)
    assert ran.code == 0
    assert "note: chat_template.jinja is used; chat_template.json has another template" in ran.err
    assert "modeling.py" in ran.err


def test_a_reader_that_goes_away_and_an_ascii_terminal(path: Path) -> None:
    call = f'"{sys.executable}" -m weightloom.runtime generate "{path}" -p hello --max-tokens 40'
    line = f"{call} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
    done = subprocess.run(
        ["/bin/bash", "-c", f"PYTHONIOENCODING=ascii {call}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.isascii() and done.stderr == ""


@pytest.fixture(scope="module")
def trained(request: pytest.FixtureRequest) -> Path:
    return smollm2.fetch(request.config.cache.mkdir("smollm2"))


@pytest.mark.real
def test_a_trained_model_says_what_the_reference_says(trained: Path) -> None:
    m = load(trained)
    for case in CASES:
        assert prompt_ids(m, case["prompt"]) == case["input_ids"]
        logits = m.model(mx.array([case["input_ids"]]))[0, -1]
        for token, value in zip(case["top5_ids"], case["top5_logits"], strict=True):
            assert abs(logits[token].item() - value) <= 0.05
        stops = m.need_tokenizer().stop_ids
        expected = [token for token in case["greedy_ids"][:8] if token not in stops]
        assert list(generate_ids(m, case["input_ids"], 8)) == expected
    question = [{"role": "user", "content": "What is the capital of France?"}]
    assert "".join(generate(m, question, 12, stream=True)) == "The capital of France is Paris."


@pytest.mark.real
def test_a_trained_gguf_saved_as_hf_has_the_same_parameters(trained: Path, tmp_path: Path) -> None:
    from weightloom.plugins.modules.binding import parameters

    m = load(trained)
    with pytest.raises(UsageError, match="GGUF files are read and not written"):
        m.save(tmp_path / "original")
    m.save(tmp_path / "hf", layout="hf")
    again = load(tmp_path / "hf")
    first, second = parameters(m.model), parameters(again.model)
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype and mx.array_equal(array, second[name]).item(), name
    assert again.need_tokenizer().stop_ids == m.need_tokenizer().stop_ids
    prompt = CASES[0]["prompt"]
    assert generate(again, prompt, 8) == generate(m, prompt, 8)
