"""A new package: the templates of its kind, filled in with its names, written in one step."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template

from weightloom.engine.disk.commit import replacing_directory
from weightloom.engine.os_errors import storage_error
from weightloom.plugins.specs import INTERFACE
from weightloom.runtime.scaffolding.names import Names

# A kind's files: the template's ending, and the file that it becomes.
_MODULE = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "module.py": "$module.py",
    "test.py": "tests/test_$module.py",
}
LAYOUTS: dict[str, dict[str, str]] = {
    "architecture": _MODULE,
    "op": _MODULE,
    "format": _MODULE,
    "rules": {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "init.py": "$module/__init__.py",
        "rules.yaml": "$module/$model_type.yaml",
        "test.py": "tests/test_$module.py",
    },
}


def write_package(kind: str, names: Names, target: Path) -> list[Path]:
    """Write a package of a kind into a directory that is not there or empty; give its files.

    Raises UsageError for a directory with something in it, StorageError where writing fails.
    """
    made = rendered(kind, names)
    with replacing_directory(target, overwrite=False, ours=lambda _: ()) as folder:
        for name, text in made.items():
            path = folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise storage_error("write", path, error) from error
    return [target / name for name in made]


def rendered(kind: str, names: Names) -> dict[str, str]:
    """Give the text of each file of a package of a kind."""
    values = {
        "distribution": names.distribution,
        "module": names.module,
        "model_type": names.module,
        "Class": names.class_name,
        "title": " ".join(names.words),
        "version": version("weightloom"),
        "interface": INTERFACE,
    }
    named = {Template(name).substitute(values): ending for ending, name in LAYOUTS[kind].items()}
    return {name: _template(f"{kind}-{ending}").substitute(values) for name, ending in named.items()}


def _template(name: str) -> Template:
    folder = files("weightloom.runtime.scaffolding.templates")
    return Template(folder.joinpath(f"{name}.template").read_text(encoding="utf-8"))
