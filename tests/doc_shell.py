"""Run the blocks of a page of documentation in a shell, as a reader does.

A block with a file's name behind its language is written there; a `diff` changes that file. The others are commands
with what they print: one that fails is followed by `echo $?`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.doc_blocks import blocks, same_output, shown


class Shell:
    """A shell: the directory, the variables and the last exit code pass on from command to command."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.variables = {**variables, "PWD": str(folder)}
        self.code = 0

    @property
    def folder(self) -> Path:
        """Where the next command runs."""
        return Path(self.variables["PWD"])

    def run(self, command: str, state: Path) -> str:
        """Run a command and give what it prints, errors too; what it leaves behind goes by the file `state`."""
        script = f"(exit {self.code})\n{command}\ncode=$?\nenv -0 >'{state}'\nexit $code"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        left = (line.partition("=") for line in state.read_text(encoding="utf-8").split("\0") if line)
        self.variables = {name: value for name, _, value in left}
        return done.stdout


def outside(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Give the variables of this process, without those that lead back to it or change what pytest says.

    Where CI is set, pytest shortens no line.
    """
    back = {"PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "CI", "BUILD_NUMBER"}
    return {name: value for name, value in environment.items() if name not in back}


def walk(page: Path, shell: Shell, state: Path) -> int:
    """Do what a page says, block by block, compare what commands print, and give their number."""
    ran = 0
    for language, file, text in blocks(page):
        if language == "console":
            ran += _run_all(text, shell, state)
        elif language == "diff":
            assert file is not None
            change(shell.folder / file, text)
        elif file is not None:
            (shell.folder / file).write_text(text, encoding="utf-8")
        else:
            assert language == "text", f"a block of {language} that nothing is done with"
    assert shell.code == 0
    return ran


def _run_all(text: str, shell: Shell, state: Path) -> int:
    commands = list(shown(text))
    for command, output in commands:
        assert shell.code == 0 or command == "echo $?", f"the command before `{command}` failed"
        said = shell.run(command, state)
        assert same_output(output, said), f"{command}\nsays\n{said}"
    return len(commands)


def change(file: Path, diff: str) -> None:
    """Put in place of a diff's old lines, which are in the file once, its new ones."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] != "+")
    new = "".join(line[1:] for line in lines if line[0] != "-")
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} has {text.count(old)} of\n{old}"
    file.write_text(text.replace(old, new), encoding="utf-8")
