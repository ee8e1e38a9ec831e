"""gpt-oss with experts in MXFP4, packed and unpacked, against Transformers on the numbers that the codes stand for.

mlx-lm agrees on what is converted, where YaRN's ramp is rounded, as it always does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.families.experts_a import FAMILIES
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load

pytestmark = pytest.mark.oracle

FAMILY = next(family for family in FAMILIES if family.model_type == "gpt_oss")
TOKENS = np.random.default_rng(7).integers(1, 64, (2, 24))
HIDDEN, INNER, GROUP = 64, 32, 32
SECTION = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray[Any, Any]]:
    """A checkpoint with blocks of codes, and what Transformers answers with the numbers that they stand for."""
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    rope = {**FAMILY.sizes["rope_parameters"], "truncate": True}
    content = {**FAMILY.sizes, "hidden_size": HIDDEN, "intermediate_size": INNER, "rope_parameters": rope}
    config = transformers.GptOssConfig(**content, attn_implementation="eager")
    model = transformers.GptOssForCausalLM(config).float().eval()
    chance = torch.Generator().manual_seed(3)
    packed = {}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=chance) / 3)
        for name, parameter in model.named_parameters():
            if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                count, columns, rows = parameter.shape
                blocks = torch.randint(0, 256, (count, rows, columns // GROUP, 16), generator=chance, dtype=torch.uint8)
                scales = torch.randint(122, 126, (count, rows, columns // GROUP), generator=chance, dtype=torch.uint8)
                parameter.copy_(convert_moe_packed_tensors(blocks.clone(), scales.clone()).float())
                packed |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        answers = model(torch.from_numpy(TOKENS)).logits.numpy()
    plain = {name: value for name, value in model.state_dict().items() if f"{name}_blocks" not in packed}
    folder = tmp_path_factory.mktemp("gpt_oss")
    save_file({**plain, **packed}, folder / "model.safetensors", {"format": "pt"})
    written = {**config.to_dict(), "quantization_config": SECTION, "architectures": ["GptOssForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(written), encoding="utf-8")
    return folder, answers


def distance(folder: Path, wanted: np.ndarray[Any, Any], **how: Any) -> float:
    found = load(folder, **how).model(mx.array(TOKENS))
    return float(np.abs(np.array(found.astype(mx.float32)) - wanted).max() / max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("how", [{}, {"quantize": "dense"}])
def test_answers(checkpoint: tuple[Path, np.ndarray[Any, Any]], how: dict[str, str]) -> None:
    folder, wanted = checkpoint
    assert distance(folder, wanted, **how) < 1e-4


def test_a_save_has_the_same_bytes(checkpoint: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path) -> None:
    folder, _ = checkpoint
    load(folder).save(tmp_path / "saved")
    assert (tmp_path / "saved" / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()


def test_mlx_lm_takes_what_is_converted(checkpoint: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path) -> None:
    from mlx_lm.utils import load_model

    folder, wanted = checkpoint
    convert(folder, Order(tmp_path / "mlx", "mlx"), Wish())
    theirs, _ = load_model(tmp_path / "mlx")
    np.testing.assert_allclose(np.array(theirs(mx.array(TOKENS))), wanted, rtol=1e-3, atol=1e-3)
    assert distance(tmp_path / "mlx", wanted) < 1e-4
    convert(tmp_path / "mlx", Order(tmp_path / "back", "hf"), Wish())
    assert (tmp_path / "back" / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
