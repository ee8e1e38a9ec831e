"""Several prompts at once: each gives what it gives alone, whatever the others' length."""

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import runnable
from tests.runtime.support import Cli
from weightloom.engine.errors import UsageError
from weightloom.runtime import LoadedModel, generate, generate_batch, load
from weightloom.runtime.running.decoding import generate_ids
from weightloom.runtime.running.sampling import Sampling
from weightloom.runtime.terminal.printing import visible

PROMPTS = ["hello", "a much longer text, with commas", "x"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runnable(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def m(path: Path) -> LoadedModel:
    return load(path)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"temperature": 1.2, "seed": 3, "top_k": 20},
        {"repetition_penalty": 1.7},
        {"temperature": 0.9, "seed": 4, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.3},
    ],
    ids=str,
)
def test_each_is_continued_as_it_is_alone(m: LoadedModel, how: dict[str, Any]) -> None:
    assert generate_batch(m, PROMPTS, 12, **how) == [generate(m, prompt, 12, **how) for prompt in PROMPTS]


def test_a_penalty_keeps_greedy_text_from_repeating(m: LoadedModel) -> None:
    prompt = m.need_tokenizer().encode("hello")
    ids = [*prompt, *generate_ids(m, prompt, 20, Sampling(repetition_penalty=1e9))]
    assert len(ids) > len(prompt) and len(set(ids)) == len({*prompt}) + len(ids) - len(prompt)


def test_stop_strings_end_each_row(m: LoadedModel) -> None:
    whole = generate_batch(m, PROMPTS, 12)
    stop = whole[1][3:5]
    assert generate_batch(m, PROMPTS, 12, stop=[stop]) == [text.split(stop)[0] for text in whole]
    assert "".join(generate(m, PROMPTS[1], 12, stream=True, stop=[stop])) == whole[1].split(stop)[0]


def test_none_and_one(m: LoadedModel) -> None:
    assert generate_batch(m, []) == []
    assert generate_batch(m, ["hello"], 5) == [generate(m, "hello", 5)]


def test_a_prompt_without_tokens_is_named(m: LoadedModel) -> None:
    with pytest.raises(UsageError, match="prompt 2 of 3 has no tokens"):
        generate_batch(m, [[1], [], [2]])
    with pytest.raises(UsageError, match="the prompt has no tokens"):
        generate(m, [])


def test_what_is_no_prompt_is_refused(m: LoadedModel) -> None:
    none: Any = None
    with pytest.raises(UsageError, match="the prompt is None"):
        generate(m, none)
    with pytest.raises(UsageError, match="prompts is one text"):
        generate_batch(m, "hello")


def test_caches_that_do_not_know_of_padding_are_refused_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        __slots__ = ()

    m = load(path)
    monkeypatch.setattr(type(m.model), "make_cache", lambda self: [Bare()])
    with pytest.raises(UsageError, match="padding"):
        generate_batch(m, PROMPTS, 3)


def test_the_command_gives_all(cli: Cli, path: Path, m: LoadedModel) -> None:
    wanted = generate_batch(m, PROMPTS[:2], 6)
    many = ["generate", str(path), "-p", PROMPTS[0], "-p", PROMPTS[1], "--max-tokens", "6"]
    assert cli(*many, "--json").data["texts"] == wanted
    assert cli(*many).out == visible("".join(f"== {number}\n{text}\n" for number, text in enumerate(wanted, 1)))
    assert cli(*many, "--image", "x.png").code == 2


def test_the_command_takes_every_setting(cli: Cli, path: Path, m: LoadedModel) -> None:
    how: dict[str, Any] = {"temperature": 0.9, "seed": 4, "top_k": 9, "top_p": 0.9, "min_p": 0.01}
    flags = [text for name, value in how.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    given = [*flags, "--repetition-penalty", "1.3", "--stop", "zz"]
    wanted = generate(m, "hello", 9, repetition_penalty=1.3, stop=["zz"], **how)
    assert cli("generate", str(path), "-p", "hello", "--max-tokens", "9", *given, "--json").data["text"] == wanted
