"""Which tests answer which published failure: `python -m tests.cases.ledger` prints it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.guards import ROOT

_TESTS = ROOT / "tests"
# Tests with these marks are left out of a plain run.
_APART = {"oracle", "packaging"}


@dataclass(frozen=True, slots=True)
class Covering:
    """A test that carries the mark of a case, and whether a plain run makes it."""

    case: str
    test: str
    plain: bool


def listed() -> Mapping[str, Mapping[str, str]]:
    """Give the cases, each with its line, under `done` and `open`."""
    loaded: dict[str, dict[str, str] | None]
    loaded = yaml.safe_load((_TESTS / "cases" / "cases.yaml").read_text(encoding="utf-8"))
    return {state: cases or {} for state, cases in loaded.items()}


def coverings() -> list[Covering]:
    """Give every mark of a case on a test."""
    return [found for file in sorted(_TESTS.rglob("test_*.py")) for found in _of_file(file)]


def _of_file(file: Path) -> Iterator[Covering]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    of_all = [mark for node in tree.body if _sets_marks(node) for mark in _marks(node)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = [*of_all, *(mark for each in node.decorator_list for mark in _marks(each))]
            plain = not _APART & {name for name, _ in marks}
            where = f"{file.relative_to(ROOT).as_posix()}::{node.name}"
            yield from (Covering(case, where, plain) for name, cases in marks if name == "case" for case in cases)


def _sets_marks(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def _marks(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield the marks in a decorator or an assignment, with their texts."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "pytest.mark":
            yield part.attr, [arg.value for arg in _arguments(node, part) if isinstance(arg.value, str)]


def _arguments(node: ast.AST, mark: ast.Attribute) -> list[ast.Constant]:
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and part.func is mark]
    return [arg for call in calls for arg in call.args if isinstance(arg, ast.Constant)]


def main() -> None:
    """Print each case and its tests."""
    found = coverings()
    for state, cases in listed().items():
        for case, line in sorted(cases.items()):
            print(f"{case} ({state}) {line}")
            for each in sorted({(each.test, each.plain) for each in found if each.case == case}):
                print(f"    {each[0]}{'' if each[1] else ' (oracle)'}")


if __name__ == "__main__":
    main()
