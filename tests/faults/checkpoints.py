"""An old checkpoint in the target, and a new, converted one to put in its place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import mlx.core as mx

from tests.cases.fixtures import TM_RULES, const, contents, halves, iota, t0, tm, write_sharded
from weightloom.engine import Checkpoint, Drop, Plan, Rule, build_plan
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.saving.save import convert, save

RULES: list[Rule] = [Drop(r"rotary\.inv_freq$", why="computed"), *TM_RULES]
SIDE_FILES: Mapping[str, bytes | Path] = {"config.json": b'{"new": true}', "extra/notes.txt": b"new"}


def make_source(folder: Path) -> Path:
    """TM with four experts and a tensor that is dropped, in two shards."""
    return write_sharded(folder, halves({**tm(4), "rotary.inv_freq": const(0.5, 8), "model.norm.weight": iota(8)}))


def make_old(target: Path) -> Path:
    """T0 in three shards, with a config and a file that is not ours."""
    arrays = t0()
    names = list(arrays)
    write_sharded(target, [{name: arrays[name] for name in names[k::3]} for k in range(3)])
    (target / "config.json").write_bytes(b'{"old": true}')
    (target / "README.md").write_bytes(b"foreign")
    return target


def plan_for(source: Path) -> Plan:
    return build_plan(Checkpoint.open(source), RULES)


class Saver:
    """Saves the loaded source into a target; the parameters are read once."""

    def __init__(self, source: Path) -> None:
        self.plan = plan_for(make_source(source))
        self.params: dict[str, mx.array] = self.plan.load()
        self.new = {**contents(source), **{name: bytes(self.content(name)) for name in SIDE_FILES}}

    @staticmethod
    def content(name: str) -> bytes:
        content = SIDE_FILES[name]
        assert isinstance(content, bytes)
        return content

    def save(self, target: Path, files: Files = FILES) -> None:
        save(self.plan, self.params, target, overwrite=True, side_files=SIDE_FILES, files=files)

    def convert(self, target: Path, files: Files = FILES) -> None:
        convert(self.plan, target, overwrite=True, side_files=SIDE_FILES, files=files)


@cache
def old_names() -> frozenset[str]:
    return frozenset(t0())


def whole(target: Path, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    """Open the target, as a reader would, and say which one it is; anything else is a failure."""
    with Checkpoint.open(target) as checkpoint:
        names = set(checkpoint.tensors)
        build_plan(checkpoint, []).load()
    found = contents(target)
    if names == old_names():
        assert found == old
        return "old"
    assert found == {**new, "README.md": b"foreign"}
    return "new"
