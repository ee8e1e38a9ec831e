"""Sizes of files and functions, and words that must not be in the repository."""

import ast
import re

import pytest

from tests.guards import ROOT, package_sources, tracked_files

MAX_FILE_LINES = 400
MAX_ARCHITECTURE_LINES = 300
MAX_FUNCTION_LINES = 60

# Put together here, so that this file does not hold what it looks for.
REGISTRY_HOSTS = ["py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js", "deb.debian" + ".org"]
MACHINE_PATH = re.compile(r"(?<![\w.\-/~}\])*])/(?:" + "work|" + "tmp|" + "root" + r")(?:/|\b)(?!\w)")


def test_no_shipped_file_is_too_long() -> None:
    lengths = {f.relative_to(ROOT).as_posix(): f.read_text(encoding="utf-8").count("\n") for f in package_sources()}
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES}


def test_no_architecture_is_too_long() -> None:
    files = sorted((ROOT / "plugins" / "architectures").glob("*.py"))
    lengths = {file.name: file.read_text(encoding="utf-8").count("\n") for file in files}
    assert lengths
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_ARCHITECTURE_LINES}


def test_no_shipped_function_is_too_long() -> None:
    functions = [
        (
            f"{file.relative_to(ROOT)}:{node.lineno} {node.name}",
            (node.end_lineno or node.lineno) - node.lineno + 1,
        )
        for file in package_sources()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert not [item for item in functions if item[1] > MAX_FUNCTION_LINES]


def mentions(text: str) -> list[str]:
    """List the registry hosts and machine paths in a text."""
    return [host for host in REGISTRY_HOSTS if host in text] + MACHINE_PATH.findall(text)


def test_no_tracked_file_names_a_registry_host_or_a_machine_path() -> None:
    found: dict[str, list[str]] = {}
    for file in tracked_files():
        if file.is_file() and not file.is_symlink():
            found[file.relative_to(ROOT).as_posix()] = mentions(file.read_bytes().decode("utf-8", "ignore"))
    assert not {name: words for name, words in found.items() if words}


@pytest.mark.parametrize("text", ["see /" + "work/x", '"/' + 'tmp/y"', "https://" + REGISTRY_HOSTS[0], "cd /" + "tmp"])
def test_the_guard_sees_a_planted_mention(text: str) -> None:
    assert mentions(text)


@pytest.mark.parametrize("text", ["a/work/b", "demo/tmp/x", "/tmpfs", "(../tmp/x)", "framework/x", "$root/x"])
def test_the_guard_lets_other_paths_pass(text: str) -> None:
    assert not mentions(text)
