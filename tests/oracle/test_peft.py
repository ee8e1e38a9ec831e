"""Adapters made for experts one by one, on models that hold them in one tensor: what PEFT merges, and what we do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np
import pytest

from tests.oracle.all_keys.arrays import specs_of, to_mlx
from tests.oracle.all_keys.build import build
from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.trial import Trial
from weightloom.engine import Checkpoint, Plan, TensorSpec, changes, plan_adapter
from weightloom.rules import load_rules
from weightloom.runtime.adapting.adapter_plan import plan_on
from weightloom.runtime.adapting.adapter_source import open_adapter

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


def test_joined_parts_of_a_rank_stabilised_adapter_keep_the_scale_of_their_training(tmp_path: Path) -> None:
    """PEFT 0.21 doubles rank and alpha of joined parts: 2 alpha / sqrt(2 r) is more than alpha / sqrt(r) by sqrt(2)."""
    job = Job("mixtral")
    trial = Trial(job, build(job), tmp_path, "float32")
    adapter = write_adapter(trial, TARGETS["mixtral"], tmp_path / "adapter")
    file = adapter / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "use_rslora": True}))
    base = {name: np.array(to_mlx(tensor)) for name, tensor in trial.state.items()}
    plan = plan_on(open_adapter(adapter), load_rules("mixtral"), specs_of(trial.state), trial.config)
    arrays = {name: np.array(array) for name, array in plan.plan.load().items()}
    theirs = merged_by_peft(trial, adapter)
    assert set(plan.scales.values()) == {ALPHA / RANK**0.5}
    for change in plan.changes:
        ours = plan.scales[change.parameter] * (arrays[change.b] @ arrays[change.a])
        more = 2**0.5 if change.parameter.endswith("gate_up_proj") else 1
        wanted = np.array(to_mlx(theirs[change.parameter])) - base[change.parameter]
        assert np.allclose(more * ours, wanted, atol=1e-4), change.parameter


@pytest.mark.parametrize("dora", [False, True])
def test_weights_that_are_stored_in_out(dora: bool, tmp_path: Path) -> None:
    """`fan_in_fan_out`: GPT-2's layers, square ones too, and its embeddings, as PEFT writes and merges them."""
    import peft
    import torch
    import transformers

    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=40, n_positions=16)
    model = transformers.GPT2LMHeadModel(config).float()
    before = {name: tensor.clone().numpy() for name, tensor in model.state_dict().items()}
    wanted = peft.LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=["c_attn", "c_proj", "wte"], fan_in_fan_out=True, use_dora=dora
    )
    model = peft.get_peft_model(model, wanted)
    chance = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=chance).abs())
    model.save_pretrained(str(tmp_path), save_embedding_layers=False)
    merged = {name: tensor.numpy() for name, tensor in model.merge_and_unload().state_dict().items()}
    specs = {name: TensorSpec("F32", array.shape) for name, array in before.items()}
    plan = plan_on(open_adapter(tmp_path), load_rules("gpt2"), specs, config.to_dict())
    changed = {
        name: before[name] + np.array(made.added_to(mx.array(before[name])))
        for name, made in plan.factors(plan.plan.load())
    }
    assert len(changed) == 2 * 3 + 1
    (note,) = plan.notes
    assert note.startswith("fan_in_fan_out: taken as stored (in, out)") and "h.0.attn.c_attn" in note
    for name, array in changed.items():
        assert np.allclose(array, merged[name], atol=1e-4), name
        assert not np.allclose(array, before[name], atol=1e-2)


@pytest.mark.parametrize("targets", [["experts.gate_up_proj", "experts.down_proj"], ["experts.down_proj"]])
def test_experts_that_are_stored_in_out(targets: list[str], tmp_path: Path) -> None:
    """GPT-OSS: of its square stacks the biases tell what no version does."""
    import peft
    import torch
    import transformers

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "vocab_size": 20, "head_dim": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 3, "num_experts_per_tok": 2}
    base = transformers.GptOssForCausalLM(transformers.GptOssConfig(**sizes, **heads)).float()
    chance = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in base.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=chance))
    before = {name: tensor.clone().numpy() for name, tensor in base.state_dict().items()}
    model = peft.get_peft_model(
        base, peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=[], target_parameters=targets)
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=chance))
    model.save_pretrained(str(tmp_path))
    merged = {name: tensor.numpy() for name, tensor in model.merge_and_unload().state_dict().items()}
    specs = {name: TensorSpec("F32", array.shape) for name, array in before.items()}
    plan = plan_on(open_adapter(tmp_path), load_rules("gpt_oss"), specs, base.config.to_dict())
    assert len(plan.changes) == len(targets)
    for name, made in plan.factors(plan.plan.load()):
        assert np.allclose(before[name] + np.array(made.added_to(mx.array(before[name]))), merged[name], atol=1e-4), (
            name
        )
