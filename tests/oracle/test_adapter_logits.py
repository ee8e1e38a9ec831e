"""Adapters as they were before PEFT wrote stacks, against its merged model: experts one by one, and patterns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.logits import Array, assert_close, through_cache, whole, write_reference
from weightloom.engine import Checkpoint
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

LENGTH = 12
REFERENCES = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", {}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {"num_local_experts": 4}),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 16},
    ),
}
PATTERNS = {
    "rank_pattern": {"v_proj": 2, r"layers\.1\.mlp\.gate_proj": 5},
    "alpha_pattern": {"q_proj": 7, "layers.2.self_attn.o_proj": 1.5},
}
MLP = ["gate_proj", "up_proj", "down_proj"]
CASES: list[Any] = [
    pytest.param(
        "llama", ["q_proj", "v_proj", "o_proj", *MLP], {"use_rslora": True, **PATTERNS}, marks=pytest.mark.sample
    ),
    pytest.param("mixtral", ["q_proj", "w1", "w2", "w3"], {}, marks=pytest.mark.sample),
    ("mixtral", ["o_proj", "w1", "w2", "w3"], {"rank_pattern": {"o_proj": 1}}),
    ("qwen3_moe", ["q_proj", *MLP], {"lora_alpha": 9}),
]


def rank_of(module: str, values: dict[str, Any]) -> int:
    """As the published meaning has it; the patterns here begin nowhere in a name but after a dot."""
    patterns = {key.replace("\\", ""): rank for key, rank in values.get("rank_pattern", {}).items()}
    return next((rank for key, rank in patterns.items() if f".{module}".endswith(f".{key}")), 3)


def write_adapter(base: Path, folder: Path, modules: list[str], values: dict[str, Any]) -> Path:
    """Write an adapter of random factors for modules of a checkpoint, as PEFT names them."""
    from safetensors.numpy import save_file

    chance = np.random.default_rng(7)
    tensors: dict[str, Array] = {}
    for name, spec in Checkpoint.open(base).tensors.items():
        module = name.removesuffix(".weight")
        if module.rsplit(".", 1)[-1] in modules:
            rank, (rows, columns) = rank_of(module, values), spec.shape
            for side, shape in (("A", (rank, columns)), ("B", (rows, rank))):
                name = f"base_model.model.{module}.lora_{side}.weight"
                tensors[name] = chance.standard_normal(shape, dtype=np.float32) / 4
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 3, "lora_alpha": 6, "target_modules": modules}
    (folder / "adapter_config.json").write_text(json.dumps({**config, **values}))
    return folder


def merged_logits(class_name: str, base: Path, adapter: Path, tokens: Array) -> Array:
    """Give the logits of PEFT's merged model."""
    import peft
    import torch
    import transformers

    model = getattr(transformers, class_name).from_pretrained(base, dtype=torch.float32)
    merged = peft.PeftModel.from_pretrained(model, adapter).merge_and_unload().eval()
    with torch.no_grad():
        found: Array = merged(torch.tensor(tokens)).logits.numpy()
    return found


@pytest.mark.parametrize(("key", "modules", "values"), CASES, ids=str)
def test_logits_are_those_of_the_merged_model(
    key: str, modules: list[str], values: dict[str, Any], tmp_path: Path
) -> None:
    class_name, config_name, sizes = REFERENCES[key]
    base = tmp_path / "base"
    tokens, plain = write_reference(class_name, config_name, base, LENGTH, **sizes)
    adapter = write_adapter(base, tmp_path / "adapter", modules, values)
    merged = merged_logits(class_name, base, adapter, tokens)
    m = load(base, adapter=adapter)
    assert m.adapters is not None
    assert np.abs(merged - plain).max() > 1e-2
    assert_close(whole(m.model, tokens), merged)
    assert_close(through_cache(m.model, tokens, chunks=1), merged)
    convert(base, Order(tmp_path / "fused", adapters=((adapter, 1.0),)), Wish())
    assert_close(whole(load(tmp_path / "fused").model, tokens), merged)
    m.adapters.use()
    assert np.array_equal(whole(m.model, tokens), whole(load(base).model, tokens))
