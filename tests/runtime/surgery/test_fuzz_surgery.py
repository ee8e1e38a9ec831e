"""Surgery files with anything wrong with them: only a WeightloomError escapes, before a tensor is read."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.runtime.models import config_of, write_model
from tests.strategies.seeded import MANY, mutated, mutated_text, seeds
from weightloom.engine import Checkpoint, RuleSet, build_plan
from weightloom.engine.errors import WeightloomError
from weightloom.runtime.surgery.surgery import operated
from weightloom.runtime.surgery.surgery_file import read_surgery

CONFIG = config_of("llama")
OPERATIONS: tuple[dict[str, Any], ...] = (
    {"op": "scale", "pattern": "**.o_proj.weight", "factor": 0.3},
    {"op": "scale", "pattern": "model.norm.weight", "factor": 2, "side": "file"},
    {"op": "add", "pattern": "**.mlp.*.weight", "source": "donor", "alpha": 0.5},
    {"op": "replace", "pattern": "model.layers.*.mlp.up_proj.weight", "source": "donor",
     "source_key": "model.layers.*.mlp.gate_proj.weight"},
    {"op": "interpolate", "pattern": "lm_head.weight", "source_b": "donor", "ratio": 0.25, "method": "slerp"},
    {"op": "interpolate", "pattern": "**.q_proj.weight", "source_a": "donor", "source_b": "donor", "ratio": 0.75,
     "method": "lerp"},
    {"op": "prune", "granularity": "attention_head", "pattern": "**.self_attn.**", "head_ids": [1, 3]},
    {"op": "prune", "granularity": "mlp_channel", "pattern": "**.mlp.**", "channel_ids": [0, 5]},
    {"op": "prune", "granularity": "layer", "pattern": "**", "layer_ids": [1]},
)  # fmt: skip
WORDS = (
    *("version", "operations", "op", "pattern", "factor", "source", "source_key", "source_a", "source_b", "ratio"),
    *("scale", "add", "replace", "interpolate", "prune", "layer", "attention_head", "mlp_channel", "lerp", "slerp"),
    *("**", "**.*", "*", "model.layers.*.mlp.**", "lm_head.weight", "donor", ".", "file", "side", "granularity"),
)
TEXTS = (
    b"- ",
    b": ",
    b"\n",
    b"  ",
    b"&a ",
    b"*a",
    b"{",
    b"[",
    b"!!",
    b"'",
    b'"',
    b"\t",
    b".nan",
    b"~",
    b"---",
    b"<<: ",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, with another of its family beside it."""
    folder = tmp_path_factory.mktemp("surgery")
    write_model(folder / "donor", "llama")
    return write_model(folder / "model", "llama")


def take(model: Path, raw: bytes) -> None:
    """Read a surgery file and put it into the plan of a load, by headers."""
    file = model.parent / "surgery.yaml"
    file.write_bytes(raw)
    surgery = read_surgery(file)
    with contextlib.closing(Checkpoint.open(model)) as checkpoint:
        operated(build_plan(checkpoint, RuleSet(()), config=CONFIG), surgery, "model", CONFIG)


def test_the_operations_that_are_mutated_are_good(model: Path) -> None:
    for operation in OPERATIONS:
        take(model, json.dumps({"version": 1, "operations": [operation]}).encode())


@MANY
@given(seeds)
def test_only_named_errors_escape_a_mutated_surgery_file(model: Path, random: Random) -> None:
    """YAML takes JSON."""
    good = {"version": 1, "operations": random.sample(OPERATIONS, random.randint(1, 3))}
    with contextlib.suppress(WeightloomError):
        take(model, json.dumps(mutated(good, random, WORDS)).encode())


@MANY
@given(seeds)
def test_only_named_errors_escape_a_mutated_text(model: Path, random: Random) -> None:
    good = "version: 1\noperations:\n- op: scale\n  pattern: '**.o_proj.weight'\n  factor: 0.3\n- op: prune\n"
    raw = mutated_text(f"{good}  granularity: layer\n  pattern: '**'\n  layer_ids: [1]\n".encode(), random, TEXTS)
    with contextlib.suppress(WeightloomError):
        take(model, raw)
