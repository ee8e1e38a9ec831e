"""CONTRIBUTING's table of folders is the tree: every folder, by its own sentence, in the order of the imports."""

from __future__ import annotations

import ast
import re

from tests.guards import ROOT, imported_when_run, sources

ROWS = re.findall(
    r"^\| `((?:engine|plugins|runtime)/\w+)/` \| (.*) \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
# It is what `import weightloom` gives, above all layers.
FACADE = "runtime/facade"


def test_every_folder_is_there_by_its_own_sentence() -> None:
    found = [init.parent for layer in ("engine", "plugins", "runtime") for init in (ROOT / layer).glob("*/__init__.py")]
    said = {
        folder.relative_to(ROOT).as_posix(): (
            ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        ).partition("\n")[0]
        for folder in found
    }
    del said[FACADE]
    assert dict(ROWS) == said


def test_no_folder_imports_one_that_comes_after_it() -> None:
    order = [name for name, _ in ROWS]
    for number, name in enumerate(order):
        layer = name.partition("/")[0]
        files = (file for file in sources(layer) if file.is_relative_to(ROOT / name))
        imported = {each for file in files for each in imported_when_run(file.read_text(encoding="utf-8"))}
        later = [f"weightloom.{other.replace('/', '.')}" for other in order[number + 1 :] if other.startswith(layer)]
        assert not [each for each in imported if each.startswith(tuple(f"{module}." for module in later))], name
