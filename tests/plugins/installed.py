"""Distributions as an installer leaves them, in a folder on the path: metadata, entry points, one module each."""

from __future__ import annotations

import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).with_name("example")
GROUP = "weightloom.plugins"


def install(site: Path, distribution: str, points: dict[str, str], modules: dict[str, str] | None = None) -> None:
    """Put a distribution in `site`; `points` maps model types to `module:OBJECT`, `modules` names to their text."""
    install_points(site, distribution, {GROUP: points})
    for name, text in (modules or {}).items():
        (site / f"{name}.py").write_text(text)


def install_points(site: Path, distribution: str, groups: dict[str, dict[str, str]]) -> None:
    """Put a distribution's metadata in `site`, with entry points by group."""
    info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    sections = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections))


def install_example(site: Path) -> None:
    """Put the worked example there, as its pyproject.toml declares it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (EXAMPLE / "my_llama.py").read_text(encoding="utf-8")
    install(site, project["name"], project["entry-points"][GROUP], {"my_llama": text})
