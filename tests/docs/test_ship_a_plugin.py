"""Every block of docs/how-to/ship-a-plugin.md is run; with reference/architectures.md it names all there is."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib import invalidate_caches
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

from tests.doc_blocks import Program, run_page
from tests.guards import ROOT
from tests.plugins.installed import install_points
from weightloom.plugins import Architecture, configs, layers
from weightloom.plugins.specs import INTERFACE, Specs
from weightloom.plugins.testing import LAWS, Conformance
from weightloom.runtime.commands.new_plugin import KINDS as WRITTEN
from weightloom.runtime.inspecting.installed import KINDS

PAGE = ROOT / "docs" / "how-to" / "ship-a-plugin.md"
PARTS = ROOT / "docs" / "reference" / "architectures.md"
TEXT = PAGE.read_text(encoding="utf-8") + PARTS.read_text(encoding="utf-8")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Leave what `pip install -e` leaves; what the packages brought is forgotten afterwards."""
    known = set(sys.modules)

    def run(arguments: list[str]) -> None:
        folder = Path(arguments[-1].partition("[")[0]).resolve()
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        install_points(folder, project["name"], project["entry-points"])
        monkeypatch.syspath_prepend(str(folder))
        invalidate_caches()

    yield run
    for name in set(sys.modules) - known:
        if name in ("night_net", "rows", "crate"):
            del sys.modules[name]


def test_the_page_is_true(
    pip: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE, capsys, pip=pip)
    assert Path("tiny-again/model.safetensors").read_bytes() == Path("box/one.plank").read_bytes()


def test_every_group_and_kind_is_there() -> None:
    assert [group for group in KINDS.values() if f"| `{group}` |" not in TEXT] == []
    assert [kind for kind in WRITTEN if f"`{kind}`" not in TEXT.replace("--kind ", "`")] == []


def test_every_hook_and_the_version_are_there() -> None:
    assert [name for name in vars(Specs) if name.startswith("weightloom_") and f"`{name}`" not in TEXT] == []
    assert "taken for version 1, which is the\npresent one" in TEXT and INTERFACE == 1


def test_every_field_of_an_architecture_is_there() -> None:
    assert [field.name for field in fields(Architecture) if f"`{field.name}`" not in TEXT] == ["source"]


@pytest.mark.parametrize("package", [layers, configs])
def test_every_part_is_there_and_can_be_imported(package: ModuleType) -> None:
    assert [name for name in package.__all__ if f"`{name}`" not in TEXT or getattr(package, name, None) is None] == []
    modules = {each.name for each in iter_modules(package.__path__)}
    assert modules.isdisjoint(package.__all__)


def test_every_law_of_the_kit_is_there() -> None:
    of_all_samples = [name.removeprefix("test_") for name in vars(Conformance) if name.startswith("test_every")]
    laws = [*(law.name for law in LAWS), *of_all_samples]
    assert [law for law in laws if f"`{law}`" not in TEXT] == []
