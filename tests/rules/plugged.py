"""Entry points for tests: a distribution on disk, seen by importlib.metadata as an installed one is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, package: str, points: Mapping[str, Mapping[str, str]], files: Mapping[str, str]) -> None:
    """Write a distribution with entry points (by group, by name) and files into a folder on `sys.path`."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        line for group, named in points.items() for line in [f"[{group}]", *(f"{n} = {v}" for n, v in named.items())]
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
