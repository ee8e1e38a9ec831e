"""`weightloom rules watch`: a line of JSON a save, and 130 at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cases.fixtures import t0
from tests.runtime.support import Cli, checkpoint

HEAD = "schema: 1\nfamily: mine\napplies_to: {model_types: [mine]}\nlayouts:\n  hf:\n    rules:\n"
RIGHT = HEAD + "      - rename: {from: '^net\\.', to: 'model.'}\n"
WRONG = HEAD + "      - rename: {from: '^nit\\.', to: 'model.'}\n"
BROKEN = HEAD + "      - rename: {from: '(', to: 'model.'}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return checkpoint(tmp_path, {name.replace("model.", "net.", 1): array for name, array in t0().items()})


@contextmanager
def watching(file: Path, path: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "weightloom.runtime", "rules", "watch", str(file), str(path), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def save(file: Path, text: str) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(text)
    beside.replace(file)


def test_each_save_is_a_line_of_json(path: Path) -> None:
    file = path / "mine.yaml"
    save(file, WRONG)
    with watching(file, path, "--json") as process:
        first = answer(process)
        assert (first["schema"], first["would_load"], first["counts"]["missing"]) == (1, False, 20)
        save(file, RIGHT)
        second = answer(process)
        assert second["would_load"] is True and "net.norm.weight" in second["changed"]["now mapped"]
        save(file, BROKEN)
        (fault,) = answer(process)["faults"]
        assert (fault["line"], fault["column"], fault["text"]) == (7, 24, BROKEN.splitlines()[6])
        process.send_signal(signal.SIGINT)
        rest, complaint = process.communicate(timeout=30)
    assert (process.returncode, rest, complaint) == (130, "", "interrupted\n")


def test_for_people_the_wrong_line_is_shown(path: Path) -> None:
    file = path / "mine.yaml"
    save(file, BROKEN)
    with watching(file, path) as process:
        assert process.stdout is not None
        shown = [process.stdout.readline() for _ in range(4)]
        save(file, RIGHT)
        said = next(line for line in process.stdout if "load" in line)
    assert shown[0].startswith("1 fault, no plan")
    assert shown[1].startswith(f"{file}:7:24: WL003")
    assert shown[2].rstrip() == "    7 |       - rename: {from: '(', to: 'model.'}"
    assert shown[3].rstrip() == " " * 31 + "^"
    assert said.startswith("would load: 21 tensors, all mapped")


@pytest.mark.parametrize("what", ["file", "path"])
def test_what_is_not_there_is_an_error(what: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = path / "none.yaml"
    if what == "path":
        save(file, RIGHT)
    ran = Cli(capsys)("rules", "watch", file, path if what == "file" else path / "nowhere")
    assert ran.code in (1, 3) and ("none.yaml" if what == "file" else "nowhere") in ran.err
