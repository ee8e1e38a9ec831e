"""The tree, copied, and the wheel that is built from it: once for all tests."""

import shutil
from pathlib import Path

import pytest

from tests.guards import ROOT, project
from tests.packaging.building import make_environment, run

IGNORED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "node_modules")


@pytest.fixture(scope="session")
def source_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tree: a build writes beside its sources, and an old build's leftovers would be shipped."""
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("tree") / "checkout", symlinks=True, ignore=IGNORED)


@pytest.fixture(scope="session")
def wheel(source_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an sdist, then a wheel from nothing but the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    python = make_environment(folder / "builder")
    run(python, "-m", "pip", "install", "--quiet", *project()["build-system"]["requires"], folder=folder)
    hook = f"from setuptools.build_meta import build_sdist; build_sdist({str(folder)!r})"
    run(python, "-c", hook, folder=source_tree)
    (sdist,) = folder.glob("*.tar.gz")
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, sdist, folder=folder)
    (built,) = folder.glob("*.whl")
    return built
