"""Configs of adapters with anything wrong with them: only a WeightloomError escapes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.cases.fixtures import filled, write
from tests.runtime.models import config_of
from tests.strategies.seeded import MANY, mutated, mutated_text, seeds
from weightloom.engine.errors import WeightloomError
from weightloom.plugins import PluginManager
from weightloom.runtime.adapting.adapters import put_adapters, read_adapters

CONFIG = config_of("llama")
LLAMA = PluginManager().architecture("llama")
ROOT = "base_model.model.model.layers.0"
FACTORS = {
    **{f"{ROOT}.self_attn.q_proj.lora_{part}.weight": shape for part, shape in (("A", (2, 32)), ("B", (32, 2)))},
    **{f"{ROOT}.mlp.up_proj.lora_{part}.weight": shape for part, shape in (("A", (2, 32)), ("B", (24, 2)))},
}
PEFT: dict[str, Any] = {
    **{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "up_proj"], "bias": "none"},
    **{"use_rslora": False, "use_dora": False, "fan_in_fan_out": False, "rank_pattern": {"up_proj": 2}},
    **{"alpha_pattern": {"layers.0.self_attn.q_proj": 8}, "modules_to_save": None, "task_type": "CAUSAL_LM"},
    **{"layers_to_transform": None, "target_parameters": None, "init_lora_weights": True, "peft_version": "0.17.0"},
    **{"base_model_name_or_path": "here", "inference_mode": True, "lora_dropout": 0.0, "exclude_modules": None},
}
MLX: dict[str, Any] = {
    **{"fine_tune_type": "lora", "num_layers": 2, "model": "here"},
    "lora_parameters": {"rank": 2, "scale": 2.0, "dropout": 0.0, "keys": ["self_attn.q_proj"]},
}
MLX_FACTORS = {f"model.layers.0.self_attn.q_proj.lora_{part}": (32, 2)[:: 1 if part == "a" else -1] for part in "ab"}
CONFIGS = {"peft": PEFT, "mlx": MLX}
WORDS = (*PEFT, *MLX, *MLX["lora_parameters"], "LORA", "dora", "q_proj", "all-linear", ".*proj", "lora_only", "pissa")
TEXTS = (b"NaN", b"-Infinity", b",", b'"', b"\xef\xbb\xbf", b"{", b"//", b"None", b"[", b"}", b"1e999", b"\\")


MODULE = LLAMA.build(LLAMA.read_config(CONFIG))


def take(folder: Path, raw: bytes) -> None:
    """Read the adapter with this config, and put it beside a model's parameters where it fits."""
    (folder / "adapter_config.json").write_bytes(raw)
    read = read_adapters([(folder, 1.0)], LLAMA, MODULE, CONFIG)
    put_adapters(LLAMA.build(LLAMA.read_config(CONFIG)), read)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An adapter in either format, without a config."""
    found = {"peft": tmp_path_factory.mktemp("peft"), "mlx": tmp_path_factory.mktemp("mlx")}
    write(found["peft"] / "adapter_model.safetensors", filled(FACTORS, 1))
    write(found["mlx"] / "adapters.safetensors", filled(MLX_FACTORS, 1))
    return found


@pytest.mark.parametrize("form", CONFIGS)
def test_the_configs_that_are_mutated_are_good(folders: dict[str, Path], form: str) -> None:
    take(folders[form], json.dumps(CONFIGS[form]).encode())


@MANY
@given(seeds)
def test_only_named_errors_escape_a_mutated_adapter_config(folders: dict[str, Path], random: Random) -> None:
    form = random.choice(("peft", "peft", "peft", "mlx"))
    with contextlib.suppress(WeightloomError):
        take(folders[form], json.dumps(mutated(CONFIGS[form], random, WORDS)).encode())


@given(seeds)
def test_only_named_errors_escape_a_mutated_text(folders: dict[str, Path], random: Random) -> None:
    form = random.choice(tuple(CONFIGS))
    raw = mutated_text(json.dumps(CONFIGS[form], indent=1).encode(), random, TEXTS)
    with contextlib.suppress(WeightloomError):
        take(folders[form], raw)
