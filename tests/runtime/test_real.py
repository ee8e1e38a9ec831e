"""The bar of the engine: a real trained checkpoint comes back byte for byte, at the command line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests import minilm
from tests.runtime.support import Cli
from weightloom.engine import Checkpoint

pytestmark = pytest.mark.real


@pytest.fixture(scope="session")
def model(request: pytest.FixtureRequest) -> Path:
    return minilm.fetch(request.config.cache.mkdir("minilm"))


def test_every_tensor_and_the_file_come_back(cli: Cli, model: Path) -> None:
    ran = cli("verify", model)
    assert ran.code == 0
    assert "104 of 104 tensors byte-equal" in ran.out
    assert f"model.safetensors: sha256 {minilm.SHA256}, the same as written" in ran.out
    assert "1 tensor dropped by a rule, and saved back" in ran.out
    assert hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest() == minilm.SHA256


def test_the_position_ids_are_dropped_by_a_named_rule(cli: Cli, model: Path) -> None:
    plan = cli("plan", model, "--json").data
    dropped = plan["report"]["dropped"]
    assert [each["name"] for each in dropped] == ["embeddings.position_ids"]
    assert "bert.yaml:" in dropped[0]["rule"]
    assert plan["ok"] and plan["invertible"]
    assert (len(plan["sources"]), len(plan["params"])) == (104, 103)
    assert "bert.yaml:" in cli("explain", model, "embeddings.position_ids").out


def test_inspection(cli: Cli, model: Path) -> None:
    found = cli("inspect", model, "--json", "--estimate-memory").data
    assert (found["identifier"], found["tensors"], found["layout"]) == ("bert", 104, "hf")
    assert [(t["dtype"], t["count"]) for t in found["dtypes"]] == [("F32", 103), ("I64", 1)]
    assert found["memory"]["params"] == found["nbytes"] - 512 * 8


def test_conversions(cli: Cli, model: Path, tmp_path: Path) -> None:
    for layout, size, count in (("original", "30MB", 104), ("canonical", "5GB", 103), ("hf", "5GB", 103)):
        target = tmp_path / layout
        ran = cli("convert", model, target, "--layout", layout, "--max-shard-size", size)
        assert ran.code == 0, ran.err
        with Checkpoint.open(target) as written:
            assert len(written.tensors) == count
        for name in ("config.json", "tokenizer.json", "vocab.txt", "1_Pooling/config.json"):
            assert (target / name).read_bytes() == (model / name).read_bytes()
    assert len(list((tmp_path / "original").glob("*.safetensors"))) == 4
