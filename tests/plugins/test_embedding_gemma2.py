"""EmbeddingGemma 2: the text half of a whole, and configs that it cannot be made of; oracles compare its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, write
from tests.families.encoders import GEMMA2
from weightloom.engine.errors import ConfigError
from weightloom.plugins import param_specs
from weightloom.plugins.architectures.embedding_gemma2 import Model, read_config
from weightloom.runtime import load

TEXT = {"model_type": "embedding_gemma2_text", **GEMMA2, "sliding_window_pattern": 2, "global_head_dim": 32}


def test_the_text_half_of_a_whole(tmp_path: Path) -> None:
    shapes = {name: spec.shape for name, spec in param_specs(Model(read_config(TEXT))).items()}
    write(tmp_path / "model.safetensors", filled({f"language_model.{name}": shape for name, shape in shapes.items()}))
    whole = {"model_type": "embedding_gemma2", "architectures": ["EmbeddingGemma2Model"], "text_config": TEXT}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    m = load(tmp_path, text_only=True)
    found = np.array(m.model(mx.array([[1, 2, 3]])))
    assert m.task == "embed" and found.shape == (1, 3, 24) and np.isfinite(found).all()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"per_layer_config": {"1": {"head_dim": "wide"}}}, "per_layer_config"),
        ({"per_layer_config": {"1": 8}}, "per_layer_config"),
        ({"num_global_key_value_heads": 3}, "num_global_key_value_heads"),
        ({"embedding_dim": 0}, "embedding_dim"),
        ({"sliding_window": None}, "sliding_window"),
    ],
)
def test_what_cannot_be_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_config({**TEXT, **change})
    assert raised.value.field == field


def test_the_last_layer_sees_all() -> None:
    read = read_config({**TEXT, "num_hidden_layers": 3})
    assert [layer.window for layer in read.layers] == [5, None, None]
