"""new-plugin: what it writes works as it is, and nothing of the author's is written over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.plugins.installed import install_points
from weightloom.engine.errors import UsageError
from weightloom.runtime.cli import main
from weightloom.runtime.commands.new_plugin import KINDS
from weightloom.runtime.scaffolding.names import Names
from weightloom.runtime.scaffolding.writing import LAYOUTS, rendered


def installed(folder: Path) -> None:
    """Leave beside a package's modules what an installer leaves: its entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install_points(folder, project["name"], project["entry-points"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_tests_of_a_new_package_pass_as_written(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    assert main(["new-plugin", "my-arch", "--kind", kind, "--directory", str(folder), "--quiet"]) == 0
    installed(folder)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_well_formed(kind: str) -> None:
    made = rendered(kind, Names("my-arch"))
    project = tomllib.loads(made["pyproject.toml"])
    assert project["project"]["name"] == "weightloom-my-arch"
    for name, text in made.items():
        assert "$" not in text and max(map(len, text.splitlines())) <= 120, name
        if name.endswith(".py"):
            compile(text, name, "exec")


def test_every_kind_has_a_layout() -> None:
    assert set(LAYOUTS) == set(KINDS)


def test_files_that_are_there_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["new-plugin", "my-arch", "--directory", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert "mine.txt" in capsys.readouterr().err or (tmp_path / "mine.txt").read_text() == "mine"


def test_the_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-plugin", "Fast.Net", "--kind", "op", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["name"] == "weightloom-fast-net" and said["directory"] == "weightloom-fast-net"
    assert sorted(said["files"]) == sorted(str(p) for p in Path("weightloom-fast-net").rglob("*") if p.is_file())


def test_names() -> None:
    names = Names("my-arch")
    assert (names.module, names.class_name, names.distribution) == ("my_arch", "MyArch", "weightloom-my-arch")


@pytest.mark.parametrize("name", ["", "-a", "a--b", "7b", "a b", "a/b", "../a", "class", "é", "a-"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Names(name)
    assert caught.value.field == "name"
