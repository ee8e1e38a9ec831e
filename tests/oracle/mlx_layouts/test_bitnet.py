"""bitnet: mlx-lm reads packed ternary weights alone, four of them a byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.fixtures import contents, write
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

pytestmark = pytest.mark.oracle

HIDDEN, INNER, VOCABULARY, LAYERS = 32, 48, 64, 2
CONFIG: dict[str, Any] = {
    "architectures": ["BitNetForCausalLM"],
    "model_type": "bitnet",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCABULARY,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
    "quantization_config": {"quant_method": "bitnet", "modules_to_not_convert": ["lm_head"]},
}
_MATRICES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.v_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}
_NORMS = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN, "self_attn.attn_sub_norm": HIDDEN}


def published(folder: Path) -> Path:
    """Four codes a byte, a scale a matrix, as the published files have them."""
    rng = np.random.default_rng(0)
    arrays = {"model.embed_tokens.weight": rng.normal(size=(VOCABULARY, HIDDEN)).astype(np.float32)}
    arrays["model.norm.weight"] = np.ones(HIDDEN, np.float32)
    for layer in (f"model.layers.{number}." for number in range(LAYERS)):
        for name, (rows, columns) in _MATRICES.items():
            codes = rng.integers(0, 3, (4, rows // 4, columns)).astype(np.uint8)
            packed = np.bitwise_or.reduce([codes[place] << (2 * place) for place in range(4)])
            arrays[f"{layer}{name}.weight"] = packed.astype(np.uint8)
            arrays[f"{layer}{name}.weight_scale"] = np.full(1, 2.0, np.float32)
        for name, size in {**_NORMS, "mlp.ffn_sub_norm": INNER}.items():
            arrays[f"{layer}{name}.weight"] = rng.normal(size=size).astype(np.float32)
    write(folder / "model.safetensors", arrays, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_packed_weights_go_there_and_back_as_they_are(tmp_path: Path) -> None:
    """Its products are Metal's alone; loaded strictly, all parameters are what mlx-lm loads from the published form."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.utils import load_model

    source = published(tmp_path / "published")
    convert(source, Order(tmp_path / "mlx", "mlx"), Wish())
    ours, theirs = (dict(tree_flatten(load_model(place)[0].parameters())) for place in (tmp_path / "mlx", source))
    assert ours.keys() == theirs.keys()
    assert all(mx.array_equal(ours[name], theirs[name]).item() for name in ours)
    convert(tmp_path / "mlx", Order(tmp_path / "back", "hf"), Wish())
    assert contents(tmp_path / "back") == contents(source)
