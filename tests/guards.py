"""What the guards know about the repository: where it is, its layers, its files and their imports."""

import ast
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("engine", "rules", "plugins", "runtime")  # a layer imports itself and those before it
FACADE = ROOT / "runtime" / "facade"


def project() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def sources(layer: str) -> list[Path]:
    """List a layer's Python files; the facade, which stands above all layers, is left out."""
    return sorted(file for file in (ROOT / layer).rglob("*.py") if not file.is_relative_to(FACADE))


def package_sources() -> list[Path]:
    """List every Python file that is shipped."""
    return [file for layer in LAYERS for file in sources(layer)] + sorted(FACADE.rglob("*.py"))


def module_name(file: Path) -> str:
    """Give the import name of a layer's file, `engine/ops/base.py` -> `weightloom.engine.ops.base`."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(("weightloom", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imported_names(text: str) -> Iterator[str]:
    """Yield all that a text imports, at any depth; `import a.b` and `from a import b` both give a.b."""
    return _imports(text, enters=lambda node: True)


def imported_when_run(text: str) -> Iterator[str]:
    """Yield what can be imported when the program runs: all but what only type checkers read."""
    return _imports(text, enters=lambda node: not _is_for_type_checkers(node))


def imported_at_start(text: str) -> Iterator[str]:
    """Yield what is imported together with the text: no function's imports, none for type checkers."""
    return _imports(text, enters=lambda node: not (_is_function(node) or _is_for_type_checkers(node)))


def _imports(text: str, enters: Callable[[ast.AST], bool]) -> Iterator[str]:
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        yield from _names_of(node)
        if enters(node):
            # An expression imports nothing.
            waiting.extend(each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        origin = "." * node.level + (node.module or "")
        yield from (f"{origin}.{alias.name}" for alias in node.names)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def tracked_files() -> list[Path]:
    """List the files that git tracks, or all but caches and build output in a tree without git."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    skipped = {".venv", "build", "dist", "__pycache__"}
    found = (file for file in ROOT.rglob("*") if file.is_file())
    return [file for file in found if not skipped & set(file.relative_to(ROOT).parts)]
