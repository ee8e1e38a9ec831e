"""Files of a package of the Python package index, fetched once, by name and version and without its dependencies."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def fetch(cache: Path, package: str, version: str, wanted: str) -> Path:
    """Give the path of the file `wanted` of a package, fetched into `cache` unless it is there."""
    place = cache / f"{package}-{version}"
    if not (place / wanted).is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as new:
            target = Path(new) / "package"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--target", str(target), f"{package}=={version}"], check=True)
            _move(target, place, wanted)
    return place / wanted


def _move(target: Path, place: Path, wanted: str) -> None:
    """Put it in its place, unless another run was faster."""
    try:
        os.rename(target, place)
    except OSError:
        if not (place / wanted).is_file():
            raise
