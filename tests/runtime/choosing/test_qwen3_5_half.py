"""The text model of a Qwen3.5 that sees: by its own model type, under the names that published files have."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import pytest

from tests.families.recurrent import FAMILIES
from weightloom.engine.errors import PluginError
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.testing import Sample, write_checkpoint
from weightloom.runtime import load

TOKENS = mx.array([[1, 2, 3, 4, 5]])
CONFIGS = {family.model_type: family.config(family.cases[0]) for family in FAMILIES}


@pytest.mark.parametrize("whole", ["qwen3_5", "qwen3_5_moe"])
def test_the_text_model_of_a_whole_answers_as_it_does_alone(tmp_path: Path, whole: str) -> None:
    text = f"{whole}_text"
    sample = Sample(text, CONFIGS[text], spread=0.2)
    write_checkpoint(sample, PluginManager().architecture(text), tmp_path / "text")
    stored = mx.load(str(tmp_path / "text/model.safetensors"))
    below = {name.replace("model.", "model.language_model.", 1): array for name, array in stored.items()}
    (tmp_path / "whole").mkdir()
    towers = {"model.visual.x.weight": mx.zeros((4, 4)), "mtp.fc.weight": mx.zeros((4, 4))}
    mx.save_safetensors(str(tmp_path / "whole/model.safetensors"), {**below, **towers}, {"format": "pt"})
    config = {"model_type": whole, "text_config": CONFIGS[text], "vision_config": {"depth": 2}}
    (tmp_path / "whole/config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(PluginError, match="text_only=True"):
        load(tmp_path / "whole")
    m = load(tmp_path / "whole", text_only=True)
    assert m.architecture.name == text
    assert mx.array_equal(m.model(TOKENS), load(tmp_path / "text").model(TOKENS)).item()
