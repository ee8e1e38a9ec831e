"""The comparison with others: a table of what each does, and one of how each cell is kept true."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from docs.generating.tables import cell, table

FILE = Path(__file__).parent.parent / "explanation" / "comparison.yaml"
PEERS = ("weightloom", "transformers", "mlx-lm", "mlxcel")


def read() -> Mapping[str, Any]:
    """Read the data."""
    found: Mapping[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found


def text() -> str:
    """Give both tables."""
    data = read()
    head = ["", *(f"{peer} ({data[peer]['version']})" for peer in PEERS)]
    says = ([f"**{row['about']}**", *(cell(row[peer]["says"]) for peer in PEERS)] for row in data["rows"])
    ways = "A test is named by its file and its function; what no test tries, by where and when it was seen."
    kept = (f"* {row['about']}\n{_kept(row)}" for row in data["rows"])
    return f"{table(head, says)}\n\n## How each is kept true\n\n{ways}\n\n" + "\n".join(kept) + "\n"


def _kept(row: Mapping[str, Mapping[str, str]]) -> str:
    ways = ((peer, row[peer]) for peer in PEERS)
    return "\n".join(f"  * {peer}: " + (f"`{way['held']}`" if "held" in way else way["seen"]) for peer, way in ways)
