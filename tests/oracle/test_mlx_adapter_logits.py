"""Adapters as mlx-lm puts them beside its own model, against the same directory beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.oracle.logits import as_v4, assert_close, config_of, whole, write_reference
from tests.oracle.test_adapter_logits import LENGTH, REFERENCES
from weightloom.runtime.loading.loading import load

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

KEYS = {
    "llama": ["self_attn.q_proj", "mlp.down_proj", "model.embed_tokens", "lm_head"],
    "mixtral": ["self_attn.v_proj", *(f"block_sparse_moe.switch_mlp.{n}_proj" for n in ("gate", "up", "down"))],
    "qwen3_moe": ["self_attn.o_proj", *(f"mlp.switch_mlp.{n}_proj" for n in ("gate", "up", "down"))],
}
OLD_NAMES = {"qwen3_moe": {"num_local_experts": "num_experts"}}


def adapted(base: Path, folder: Path, keys: list[str], kind: str) -> Any:
    """Give mlx-lm's model with random factors, which are written as it writes them."""
    from mlx.utils import tree_flatten
    from mlx_lm.tuner.utils import linear_to_lora_layers
    from mlx_lm.utils import load_model

    parameters = {"rank": 3, "scale": 1.5, "dropout": 0.0, "keys": keys}
    model, _ = load_model(base)
    model.freeze()
    linear_to_lora_layers(model, 3, parameters, use_dora=kind == "dora")
    found = tree_flatten(model.trainable_parameters())
    shapes = {name: array.shape for name, array in found if name.rsplit(".", 1)[-1] in ("lora_a", "lora_b", "m")}
    chance = np.random.default_rng(3)
    made = {name: mx.array(chance.standard_normal(shape, dtype=np.float32) / 4) for name, shape in shapes.items()}
    model.load_weights(list(made.items()), strict=False)
    folder.mkdir()
    mx.save_safetensors(str(folder / "adapters.safetensors"), made)
    config = {"fine_tune_type": kind, "num_layers": 3, "lora_parameters": parameters}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return model.eval()


@pytest.mark.parametrize(("key", "kind"), [*((key, "lora") for key in KEYS), ("llama", "dora")])
def test_logits_are_those_of_mlx_lm(key: str, kind: str, tmp_path: Path) -> None:
    class_name, config_name, sizes = REFERENCES[key]
    base = tmp_path / "base"
    tokens, plain = write_reference(class_name, config_name, base, LENGTH, **sizes)
    (base / "config.json").write_text(json.dumps(as_v4(config_of(base), **OLD_NAMES.get(key, {}))))
    model = adapted(base, tmp_path / "adapter", KEYS[key], kind)
    reference = np.array(model(mx.array(tokens.astype(np.int32))))
    assert np.abs(reference - plain).max() > 1e-2
    assert_close(whole(load(base, adapter=tmp_path / "adapter").model, tokens), reference)


@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_logits_beside_packed_weights_are_those_of_mlx_lm(kind: str, tmp_path: Path) -> None:
    """Lengths are those of the unpacked rows."""
    from mlx_lm.utils import load_model, quantize_model, save_model

    class_name, config_name, sizes = REFERENCES["llama"]
    tokens, plain = write_reference(class_name, config_name, tmp_path / "plain", LENGTH, **sizes)
    old = as_v4(config_of(tmp_path / "plain"))
    (tmp_path / "plain" / "config.json").write_text(json.dumps(old))
    model, _ = load_model(tmp_path / "plain")
    packed, config = quantize_model(model, old, 32, 4, quant_predicate=lambda path, _: "down_proj" not in path)
    save_model(tmp_path / "base", packed, donate_model=True)
    (tmp_path / "base" / "config.json").write_text(json.dumps(config))
    keys = ["self_attn.q_proj", "mlp.down_proj", "lm_head"]
    model = adapted(tmp_path / "base", tmp_path / "adapter", keys, kind)
    reference = np.array(model(mx.array(tokens.astype(np.int32))))
    assert np.abs(reference - plain).max() > 1e-2
    assert_close(whole(load(tmp_path / "base", adapter=tmp_path / "adapter").model, tokens), reference)
