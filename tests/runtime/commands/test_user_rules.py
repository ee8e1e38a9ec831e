"""--rules FILE wherever a plan is made: every command that takes a checkpoint has it, and its rules act first."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.cases.test_adapter_load import adapter, pair
from tests.runtime.models import classifier, runnable
from tests.runtime.support import Cli
from weightloom.runtime.cli import build_parser

# What a checkpoint is called among a command's arguments.
_CHECKPOINTS = {"path", "source"}
# Rules are what these are about: they make a file, or try one again and again.
_AUTHORING = {"rules new", "rules watch", "studio"}
RULES = "schema: 1\nfamily: net\nlayouts:\n  hf:\n    rules:\n      - rename: {from: '^net\\.', to: ''}\n"
Line = Callable[[Path, Path], list[object]]
# A line of each command that makes a plan, for a checkpoint and a place to write to, and what to look for in it.
LINES: dict[str, Line] = {
    "inspect": lambda path, out: ["inspect", path, "--estimate-memory"],
    "plan": lambda path, out: ["plan", path],
    "explain": lambda path, out: ["explain", path, "model.norm.weight"],
    "verify": lambda path, out: ["verify", path],
    "convert": lambda path, out: ["convert", path, out, "--layout", "hf"],
    "generate": lambda path, out: ["generate", path, "-p", "ab", "--max-tokens", "2"],
    "embed": lambda path, out: ["embed", path, "ab", "cd", "--pooling", "mean"],
    "rerank": lambda path, out: ["rerank", path, "ab", "cd"],
    "adapter convert": lambda path, out: [
        *("adapter", "convert", adapter(out.with_name("adapter"), pair()), out),
        *("--format", "mlx", "--base", path),
    ],
    "surgery check": lambda path, out: ["surgery", "check", out.with_name("cut.yaml"), path],
}


def commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its parser, families included."""
    families = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not families:
        yield name, parser
    for family in families:
        for verb, inner in family.choices.items():
            yield from commands(inner, f"{name} {verb}".strip())


def planning() -> dict[str, argparse.ArgumentParser]:
    found = dict(commands(build_parser()))
    return {
        name: parser
        for name, parser in found.items()
        if name not in _AUTHORING and any(not a.option_strings and a.dest in _CHECKPOINTS for a in parser._actions)
    }


def test_every_command_that_takes_a_checkpoint_takes_rules() -> None:
    lacking = [name for name, parser in planning().items() if "--rules" not in parser._option_string_actions]
    assert not lacking


def test_every_command_that_takes_a_checkpoint_is_run_below() -> None:
    assert set(planning()) == set(LINES)


def under_net(folder: Path, family: str) -> Path:
    """A model with every name below `net.`."""
    classifier(folder) if family == "classifier" else runnable(folder, family)
    arrays = {f"net.{name}": np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    write(folder / "model.safetensors", arrays)
    return folder


@pytest.mark.parametrize("name", list(LINES))
def test_the_rules_act_first(cli: Cli, tmp_path: Path, name: str) -> None:
    """Without them nothing leads to a parameter, with them all does."""
    path = under_net(tmp_path / "model", {"embed": "bert", "rerank": "classifier"}.get(name, "llama"))
    rules = tmp_path / "net.yaml"
    rules.write_text(RULES)
    (tmp_path / "cut.yaml").write_text(
        "version: 1\noperations:\n- {op: scale, pattern: model.norm.weight, factor: 2.0}\n"
    )
    line = LINES[name](path, tmp_path / "out")
    assert cli(*line).code == (0 if name in ("inspect", "explain") else 1)
    ran = cli(*line, "--rules", rules, "--json")
    assert ran.code == 0, ran.err
    if name in ("inspect", "plan", "explain", "verify"):
        assert "net.yaml" in ran.out
