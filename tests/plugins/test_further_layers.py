"""Layers that guess further tokens: they stand behind a model's own, are not run, and are saved as they were."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.families.experts_b import FAMILIES
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.testing import Sample, write_checkpoint
from weightloom.runtime.loading.loading import load

CONFIGS = {family.model_type: family.config(family.cases[0]) for family in FAMILIES}


def further() -> dict[str, np.ndarray]:
    """Give tensors of a layer behind those that the config counts: a copy of one, and the joint before it."""
    values = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    return {
        f"model.layers.3.{each}": values[:rows, :columns] if columns else values[0, :rows]
        for each, rows, columns in (
            ("embed_tokens.weight", 64, 32),
            ("eh_proj.weight", 32, 64),
            ("enorm.weight", 32, 0),
            ("hnorm.weight", 32, 0),
            ("self_attn.o_proj.weight", 32, 32),
            ("mlp.experts.0.gate_proj.weight", 32, 32),
            ("shared_head.norm.weight", 32, 0),
        )
    }


@pytest.mark.parametrize("name", ["deepseek_v3", "deepseek_v32", "kimi_k2", "glm4_moe", "glm4_moe_lite"])
def test_they_are_kept_for_saving(name: str, tmp_path: Path) -> None:
    config = {**CONFIGS[name], "num_nextn_predict_layers": 1}
    source = tmp_path / "model"
    write_checkpoint(Sample(name, config), PluginManager().architecture(name), source)
    (file,) = source.glob("*.safetensors")
    held = {**load_file(file), **{name: np.ascontiguousarray(array) for name, array in further().items()}}
    save_file(held, file, metadata={"format": "pt"})
    m = load(source)
    assert len(m.model.decoder.blocks) == json.loads((source / "config.json").read_text())["num_hidden_layers"]
    m.save(tmp_path / "saved")
    saved: dict[str, np.ndarray] = {}
    for each in (tmp_path / "saved").glob("*.safetensors"):
        saved |= load_file(each)
    assert saved.keys() == held.keys()
    assert all(saved[key].tobytes() == held[key].tobytes() for key in held)
