"""The tutorial, from the built wheel in an environment that its first page makes, page after page as a reader does."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.doc_shell import Shell, outside, walk
from tests.guards import ROOT

PAGES = ROOT / "docs" / "tutorial"

pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def start(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Do what the first page says, in a folder that has nothing but the wheel."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "dist").mkdir()
    shutil.copy(wheel, folder / "dist")
    python = folder / "bin"
    python.mkdir()
    (python / "python3").symlink_to(sys.executable)
    variables = outside()
    # What pip warns of is this machine's affair.
    shell = Shell(folder, {**variables, "PATH": f"{python}:{variables['PATH']}", "PIP_QUIET": "1"})
    assert walk(PAGES / "index.md", shell, folder / "state")
    return shell


@pytest.mark.parametrize("name", ["first-rule", "first-plugin", "first-adapter"])
def test_a_lesson_is_true(name: str, start: Shell, tmp_path: Path) -> None:
    assert walk(PAGES / f"{name}.md", Shell(start.folder, start.variables), tmp_path / "state") > 2
