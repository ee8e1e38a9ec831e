"""Crates: a directory whose `crate.json` holds the config and lists its weight files, which have names of their own."""

from __future__ import annotations

import json
from pathlib import Path

from weightloom.engine import Checkpoint, CheckpointError
from weightloom.plugins import Bundle


class Source:
    def open(self, path: Path) -> Bundle:
        listed = json.loads((path / "crate.json").read_text(encoding="utf-8"))
        if not isinstance(listed.get("planks"), list):
            raise CheckpointError("the crate lists no planks", expected="a list of files", file=path / "crate.json")
        checkpoint = Checkpoint.from_files([path / name for name in listed["planks"]])
        texts = {name: path / name for name in listed.get("papers", ())}
        return Bundle(checkpoint, json.dumps(listed["config"]).encode(), texts)


SOURCE = Source()
