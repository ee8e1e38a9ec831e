"""muse_spark as it is published, its experts in NVFP4: to mlx-lm's form as mlx-lm itself makes it, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden.make import file_bytes
from tests.golden.reference import Tensor
from tests.oracle import peer
from tests.oracle.mlx_layouts.hybrid import _SPARK
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

EXPERTS, WIDE, INNER = 4, 16, 16
TEXT: dict[str, Any] = {**_SPARK["text_config"], "rms_norm_eps": 1e-5, "post_norm_eps": 1e-8, "output_multiplier": 0.2}
CONFIG = {
    "model_type": "muse_spark",
    "text_config": TEXT | {"final_logit_softcapping": 20.0, "rope_parameters": {"rope_theta": 1e4}},
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}
AT = "model.language_model.layers.0"


def tensors() -> dict[str, Tensor]:
    """One layer, in the published dtypes; no tower."""
    experts = f"{AT}.mlp.experts"
    norms = ("input_layernorm", "pre_feedforward_layernorm", "mlp.pre_expert_norm", "mlp.experts.post_expert_norm")
    return {
        f"{experts}.gate_up_proj": Tensor("U8", (EXPERTS, 2 * INNER, WIDE // 2)),
        f"{experts}.gate_up_proj_weight_scale": Tensor("F8_E4M3", (EXPERTS, 2 * INNER, WIDE // 16)),
        f"{experts}.gate_up_proj_weight_scale_2": Tensor("F32", (EXPERTS, 2)),
        f"{experts}.gate_up_proj_input_scale": Tensor("F32", (EXPERTS,)),
        f"{experts}.down_proj": Tensor("U8", (EXPERTS, WIDE, INNER // 2)),
        f"{experts}.down_proj_weight_scale": Tensor("F8_E4M3", (EXPERTS, WIDE, INNER // 16)),
        f"{experts}.down_proj_weight_scale_2": Tensor("F32", (EXPERTS,)),
        f"{experts}.down_proj_input_scale": Tensor("F32", (EXPERTS,)),
        f"{AT}.post_attention_residual_gate.gate": Tensor("BF16", (32,)),
        **{f"{AT}.{name}.weight": Tensor("BF16", (WIDE,)) for name in norms},
    }


def written(folder: Path) -> Path:
    """The published form, with finite values that are no round numbers."""
    draw, data = np.random.default_rng(3), {}
    for name, tensor in tensors().items():
        values = draw.standard_normal(tensor.shape).astype(np.float32)
        halves, codes = values.view(np.uint32) >> 16, draw.integers(0, 120, tensor.shape, np.uint8)
        data[name] = {"F32": values, "BF16": halves.astype(np.uint16)}.get(tensor.dtype, codes).tobytes()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(file_bytes(tensors(), data))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_as_mlx_lm_makes_it_and_back(tmp_path: Path) -> None:
    import mlx.core as mx
    from mlx_lm.models.muse_spark import Model, ModelArgs

    source = written(tmp_path / "published")
    found = convert(source, Order(tmp_path / "mlx", "mlx"), Wish())
    held = mx.load(str(source / "model.safetensors"))
    assert isinstance(held, dict)
    theirs = Model(ModelArgs.from_dict(CONFIG)).sanitize(held)
    ours = mx.load(str(tmp_path / "mlx" / "model.safetensors"))
    assert isinstance(ours, dict)
    assert sorted(ours) == sorted(theirs)
    for name, array in theirs.items():
        assert (ours[name].dtype, ours[name].shape) == (array.dtype, array.shape), name
        assert bool(mx.array_equal(ours[name], array)), name
    assert sum(name.endswith("input_scale") for name in found.kept) == 2
    convert(tmp_path / "mlx", Order(tmp_path / "back", "hf"), Wish())
    assert peer.read_files(tmp_path / "back") == peer.read_files(source)
    assert {path.name: path.read_bytes() for path in (tmp_path / "back").iterdir()} == {
        path.name: path.read_bytes() for path in source.iterdir()
    }
