"""Adapters that we write, read by PEFT and by mlx-lm: the same bits, and the same logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.oracle.logits import Array, as_v4, assert_close, config_of, whole, write_reference
from tests.oracle.test_mlx_adapter_logits import KEYS, OLD_NAMES, adapted
from weightloom.runtime.loading.loading import load
from weightloom.runtime.model import LoadedModel

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

LENGTH = 12
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 16}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", {}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {"num_local_experts": 4}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", MOE),
}
PLAIN = ["q_proj", "v_proj", "down_proj"]
# What PEFT is asked for, of a Llama.
ASKED: dict[str, dict[str, Any]] = {
    "plain": {"target_modules": PLAIN},
    "rslora": {"target_modules": PLAIN, "use_rslora": True},
    "patterns": {"target_modules": PLAIN, "rank_pattern": {"v_proj": 2}, "alpha_pattern": {"down_proj": 5}},
    "dora": {"target_modules": PLAIN, "use_dora": True},
    "embeddings": {"target_modules": ["embed_tokens", "lm_head", "o_proj"]},
    "whole": {"target_modules": PLAIN, "modules_to_save": ["lm_head"]},
}


def reference(key: str, base: Path) -> Array:
    class_name, config_name, sizes = MODELS[key]
    tokens, _ = write_reference(class_name, config_name, base, LENGTH, **sizes)
    return tokens


def in_peft(key: str, base: Path, adapter: Path) -> Any:
    """Give PEFT's model with an adapter from a directory."""
    import peft
    import torch
    import transformers

    model = getattr(transformers, MODELS[key][0]).from_pretrained(base, dtype=torch.float32)
    return peft.PeftModel.from_pretrained(model, adapter).eval()


def logits_of(model: Any, tokens: Array) -> Array:
    import torch

    with torch.no_grad():
        found: Array = model(torch.tensor(tokens)).logits.numpy()
    return found


def by_peft(base: Path, folder: Path, asked: dict[str, Any]) -> Path:
    """Let PEFT write an adapter with random factors."""
    import peft
    import torch
    import transformers

    model = transformers.LlamaForCausalLM.from_pretrained(base, dtype=torch.float32)
    config = peft.LoraConfig(r=3, lora_alpha=6, task_type="CAUSAL_LM", **asked)
    made = peft.get_peft_model(model, config)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if ".lora_" in name:
                parameter.add_(torch.randn(parameter.shape, generator=generator) / 4)
    made.save_pretrained(folder)
    return folder


def assert_bit_equal(model: Any, folder: Path) -> None:
    """Hold what PEFT has in its model against what the file has, name by name."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import load_file

    written = load_file(folder / "adapter_model.safetensors")
    # Embeddings that are not changed are written beside their factors by PEFT alone.
    held = {name: t for name, t in get_peft_model_state_dict(model).items() if ".base_layer." not in name}
    assert held.keys() == {name for name in written if ".base_layer." not in name}
    assert all(torch.equal(held[name], written[name]) for name in held)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.sample) if name == "dora" else name for name in ASKED]
)
def test_what_is_written_again_loads_in_peft_bit_equal(name: str, tmp_path: Path) -> None:
    tokens = reference("llama", tmp_path / "base")
    made = by_peft(tmp_path / "base", tmp_path / "made", ASKED[name])
    m = load(tmp_path / "base", adapter=made)
    m.save_adapter(tmp_path / "again")
    model = in_peft("llama", tmp_path / "base", tmp_path / "again")
    assert_bit_equal(model, made)
    assert_bit_equal(model, tmp_path / "again")
    assert_close(whole(m.model, tokens), logits_of(model, tokens))


@pytest.mark.parametrize(("key", "kind"), [*((key, "lora") for key in KEYS), ("llama", "dora")])
def test_what_mlx_lm_made_loads_in_peft(key: str, kind: str, tmp_path: Path) -> None:
    """The same bits where PEFT holds a module's factors apart; the same logits also where it joins those of experts."""
    base = tmp_path / "base"
    tokens = reference(key, base)
    v5 = (base / "config.json").read_bytes()
    (base / "config.json").write_text(json.dumps(as_v4(config_of(base), **OLD_NAMES.get(key, {}))))
    # Of embeddings mlx-lm has lengths of rows, PEFT of columns.
    keys = [name for name in KEYS[key] if kind == "lora" or "embed" not in name]
    theirs = adapted(base, tmp_path / "adapter", keys, kind)
    wanted = np.array(theirs(mx.array(tokens.astype(np.int32))))
    (base / "config.json").write_bytes(v5)
    m = load(base, adapter=tmp_path / "adapter")
    m.save_adapter(tmp_path / "peft", form="peft")
    model = in_peft(key, base, tmp_path / "peft")
    assert_close(logits_of(model, tokens), wanted)
    if key == "llama":
        assert_bit_equal(model, tmp_path / "peft")
    assert_back(m, tmp_path)


def assert_back(m: LoadedModel, folder: Path) -> None:
    """Hold what comes back from PEFT's format against what mlx-lm wrote."""
    back = load(m.path, adapter=folder / "peft")
    back.save_adapter(folder / "mlx", form="mlx")
    before, after = (mx.load(str(folder / name / "adapters.safetensors")) for name in ("adapter", "mlx"))
    assert before.keys() == after.keys()
    assert all(mx.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.sample) if name == "patterns" else name for name in ASKED]
)
def test_what_peft_made_loads_in_mlx_lm(name: str, tmp_path: Path) -> None:
    """With equal logits; what the format has no place for is refused by name."""
    from mlx_lm.utils import load_adapters, load_model

    from weightloom.engine.errors import PlanError

    base = tmp_path / "base"
    tokens = reference("llama", base)
    made = by_peft(base, tmp_path / "made", ASKED[name])
    wanted = logits_of(in_peft("llama", base, made), tokens)
    m = load(base, adapter=made)
    if name == "whole":
        with pytest.raises(PlanError, match=r"lm_head\.weight is a whole tensor"):
            m.save_adapter(tmp_path / "mlx", form="mlx")
        return
    m.save_adapter(tmp_path / "mlx", form="mlx")
    (base / "config.json").write_text(json.dumps(as_v4(config_of(base))))
    model, _ = load_model(base)
    theirs = load_adapters(model, str(tmp_path / "mlx"))
    theirs.eval()
    assert_close(np.array(theirs(mx.array(tokens.astype(np.int32)))), wanted)
