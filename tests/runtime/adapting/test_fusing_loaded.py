"""Adapters fused into a model that is loaded: the same as what convert writes, packed or not, before surgery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.test_adapter_load import ATTENTION, Q, adapter, logits, pair
from tests.runtime.adapting.test_fusing import NAME, arrays_in, fuse, packed
from tests.runtime.adapting.test_fusing_packed import in_four_bits
from tests.runtime.adapting.test_writing import peft_experts
from tests.runtime.models import config_of, runnable, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import NotInvertible, PlanError, UsageError
from weightloom.runtime.adapting.losses import LossPolicy
from weightloom.runtime.adapting.wish import Fusing
from weightloom.runtime.loading.loading import load


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


@pytest.mark.parametrize("lazy", [False, True])
def test_dense_parameters_are_those_that_convert_writes(lazy: bool, base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair())
    m = load(base, lazy=lazy, adapter=Fusing(made))
    fuse(base, tmp_path / "fused", made)
    assert m.adapters is None and m.fused == ((made, 1.0),)
    assert np.array_equal(logits(m), logits(load(tmp_path / "fused")))
    assert np.allclose(logits(m), logits(load(base, adapter=made)), atol=1e-3)
    with pytest.raises(NotInvertible):
        m.save(tmp_path / "again")
    m.save(tmp_path / "again", layout="hf")
    before, after = arrays_in(tmp_path / "fused"), arrays_in(tmp_path / "again")
    assert before.keys() == after.keys()
    assert all(np.array_equal(np.array(before[name]), np.array(after[name])) for name in before)


@pytest.mark.parametrize("when", ["keep", "bits", "dense"])
def test_packed_parameters_in_each_form(when: Any, tmp_path: Path) -> None:
    config = config_of("mixtral", intermediate_size=64)
    quantized = in_four_bits(write_model(tmp_path / "plain", "mixtral", config), tmp_path / "packed")
    small = {name: array / 4 for name, array in pair().items()}
    made, policy = adapter(tmp_path / "one", small), LossPolicy(when, 0.01)
    m = load(quantized, adapter=Fusing([(made, 0.5)], policy))
    fuse(quantized, tmp_path / "fused", made, losses=policy)
    assert any("of the change is lost" in note for note in m.notes)
    assert any(NAME in note for note in m.report.notes)
    half = load(quantized, adapter=[(made, 0.5)])
    plain = logits(load(quantized))
    # In four bits the router sends some tokens elsewhere.
    near = 0.9 if when == "keep" else 0.1
    assert np.linalg.norm(logits(m) - logits(half)) < near * np.linalg.norm(plain - logits(half))
    m.save(tmp_path / "again", layout="mlx")
    assert np.array_equal(logits(load(tmp_path / "again")), logits(m))
    whole = load(quantized, adapter=Fusing(made, policy))
    assert np.array_equal(logits(whole), logits(load(tmp_path / "fused")))


def test_stacks_of_packed_experts_become_dense(tmp_path: Path) -> None:
    config = config_of("mixtral", intermediate_size=64)
    quantized = in_four_bits(write_model(tmp_path / "plain", "mixtral", config), tmp_path / "packed")
    place = "base_model.model.model.layers.1.block_sparse_moe.experts"
    chance = np.random.default_rng(4)
    arrays = {
        name: chance.standard_normal((2, 64) if ".w2.lora_A" in name else (64, 2) if ".lora_B" in name else (2, 32))
        for name in peft_experts()
    }
    arrays = {n: (a[:32] if ".w2.lora_B" in n else a).astype(np.float32) for n, a in arrays.items()}
    assert all(name.startswith(place) for name in arrays)
    made = adapter(tmp_path / "one", arrays)
    m = load(quantized, adapter=Fusing(made, LossPolicy("dense", 0.001)))
    assert np.allclose(logits(m), logits(load(quantized, adapter=made)), atol=2e-2)


def test_to_stop_stops_the_load(base: Path, tmp_path: Path) -> None:
    tiny = {name: array * 1e-4 for name, array in pair().items()}
    made, quantized = adapter(tmp_path / "one", tiny), packed(base, tmp_path / "packed")
    with pytest.raises(PlanError, match="none of it arrives"):
        load(quantized, adapter=Fusing(made, LossPolicy("stop")))


def test_surgery_acts_on_what_adapters_made(base: Path, tmp_path: Path) -> None:
    file = tmp_path / "surgery.yaml"
    file.write_text(f"version: 1\noperations:\n- {{op: scale, pattern: '{NAME}', factor: 2.0}}\n")
    made = adapter(tmp_path / "one", pair())
    with pytest.raises(UsageError, match="adapters and surgery"):
        load(base, adapter=made, surgery=file)
    m = load(base, adapter=Fusing(made), surgery=file)
    fuse(base, tmp_path / "fused", made)
    fused = arrays_in(tmp_path / "fused")[NAME] * 2
    assert np.allclose(np.array(m.model.model.layers[0].self_attn.q_proj.weight), np.array(fused), atol=1e-5)


@pytest.mark.parametrize("given", [(), [], 3, [("one",)]])
def test_a_wish_to_fuse_that_is_none(given: Any, base: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(base, adapter=Fusing(given))
    assert caught.value.field == "adapter"


def test_generate_fuses(cli: Cli, tmp_path: Path) -> None:
    base = runnable(tmp_path / "base")
    loud = {name: 40 * array for name, array in pair(f"{ATTENTION}.v_proj", rows=16).items()}
    made = adapter(tmp_path / "one", loud)
    arguments = ("generate", base, "-p", "some text", "--max-tokens", 8, "--json", "--adapter", made)
    beside, fused = cli(*arguments), cli(*arguments, "--fuse")
    assert fused.data["text"] == beside.data["text"]
    assert any("fused: " in note for note in fused.data["notes"])
    assert not any("fused: " in note for note in beside.data["notes"])
    assert cli("generate", base, "-p", "x", "--fuse").code == 2
    tiny = {name: array * 1e-4 for name, array in pair(Q).items()}
    lost = adapter(tmp_path / "two", tiny)
    quantized = packed(write_model(tmp_path / "plain", "llama"), tmp_path / "packed")
    stopped = cli("generate", quantized, "-p", "x", "--adapter", lost, "--fuse", "--when-lost", "stop")
    assert stopped.code == 1 and NAME in stopped.err
