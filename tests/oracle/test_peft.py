"""Adapters made for experts one by one, on models that hold them in one tensor: what PEFT merges, and what we do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.oracle.all_keys.arrays import specs_of, to_mlx
from tests.oracle.all_keys.build import build
from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.trial import Trial
from weightloom.engine import Checkpoint, Plan, changes, plan_adapter
from weightloom.rules import load_rules

if TYPE_CHECKING:
    import torch

pytestmark = [pytest.mark.oracle, pytest.mark.sample, pytest.mark.filterwarnings("ignore")]

RANK, ALPHA = 3, 6
# key -> modules that are adapted, as they are published
TARGETS = {
    "mixtral": ["q_proj", "w1", "w2", "w3"],
    "qwen3_moe": ["o_proj", "gate_proj", "up_proj", "down_proj"],
}


def write_adapter(trial: Trial, modules: list[str], directory: Path) -> Path:
    """Write a PEFT adapter of random factors for the modules of a published checkpoint."""
    from safetensors.numpy import save_file

    chance = np.random.default_rng(7)
    tensors = {}
    for name, spec in Checkpoint.open(trial.source).tensors.items():
        module = name.removesuffix(".weight")
        if module.rsplit(".", 1)[-1] in modules:
            rows, columns = spec.shape
            sizes = {"A": (RANK, columns), "B": (rows, RANK)}
            for side, shape in sizes.items():
                key = f"base_model.model.{module}.lora_{side}.weight"
                tensors[key] = chance.standard_normal(shape, dtype=np.float32)
    directory.mkdir()
    save_file(tensors, directory / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": modules, "task_type": "CAUSAL_LM"}
    (directory / "adapter_config.json").write_text(json.dumps(config))
    return directory


def merged_by_peft(trial: Trial, adapter: Path) -> dict[str, torch.Tensor]:
    import peft

    model, _ = trial.loaded(trial.source)
    found: dict[str, Any] = peft.PeftModel.from_pretrained(model, adapter).merge_and_unload().state_dict()
    return found


def merged_by_us(plan: Plan, base: dict[str, torch.Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    """The base's parameters, changed by the factors of a plan."""
    loaded = plan.load()
    found = {name: np.array(to_mlx(tensor)) for name, tensor in base.items()}
    for change in changes(plan):
        alpha = change.alpha({name: ALPHA / rank for name, rank in change.parts})
        found[change.parameter] += alpha / change.rank * np.array(loaded[change.b]) @ np.array(loaded[change.a])
    return found


@pytest.mark.parametrize("key", TARGETS)
def test_merged_weights_are_those_of_peft(key: str, tmp_path: Path) -> None:
    job = Job(key)
    trial = Trial(job, build(job), tmp_path, "float32")
    adapter = write_adapter(trial, TARGETS[key], tmp_path / "adapter")
    base = dict(trial.state)
    checkpoint = Checkpoint.open(adapter / "adapter_model.safetensors")
    plan = plan_adapter(checkpoint, load_rules("peft"), load_rules(key), specs_of(base), config=trial.config)
    plan.check()
    ours, theirs = merged_by_us(plan, base), merged_by_peft(trial, adapter)
    assert sorted(ours) == sorted(theirs)
    changed = {change.parameter for change in changes(plan)}
    assert len(changed) == 3 * 2
    for name, tensor in theirs.items():
        wanted = np.array(to_mlx(tensor))
        assert np.allclose(ours[name], wanted, atol=1e-5), name
        assert (name in changed) != np.array_equal(wanted, np.array(to_mlx(base[name]))), name


@pytest.mark.parametrize("key", TARGETS)
def test_an_adapter_comes_back_as_it_was(key: str, tmp_path: Path) -> None:
    """PEFT has no way back from the joined form."""
    job = Job(key)
    trial = Trial(job, build(job), tmp_path, "float32")
    source = write_adapter(trial, TARGETS[key], tmp_path / "adapter") / "adapter_model.safetensors"
    plan = plan_adapter(Checkpoint.open(source), load_rules("peft"), load_rules(key), specs_of(trial.state))
    (written,) = plan.save(plan.load(), tmp_path / "again")
    assert written.read_bytes() == source.read_bytes()
