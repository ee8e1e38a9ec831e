"""The text model of a whole Llama 4, as published and as mlx-lm has it, against Transformers."""

from __future__ import annotations

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

FAMILY = next(family for family in FAMILIES if family.model_type == "llama4_text")
TOKENS = np.random.default_rng(7).integers(1, 64, (2, 24))
VISION = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
    "vision_output_dim": 32,
    "projector_input_dim": 32,
    "projector_output_dim": 32,
}


def answers(folder: Path) -> np.ndarray[Any, Any]:
    return np.array(load(folder, text_only=True).model(mx.array(TOKENS)))


def test_it_answers_and_is_saved_as_the_whole(tmp_path: Path) -> None:
    import torch
    import transformers

    text = {name: value for name, value in FAMILY.config(FAMILY.cases[0]).items() if name != "model_type"}
    config = transformers.Llama4Config(text_config=text, vision_config=VISION)
    config._attn_implementation = "eager"
    whole = transformers.Llama4ForConditionalGeneration(config).float().eval()
    chance = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in whole.named_parameters():
            drawn = torch.randn(parameter.shape, generator=chance) / 3
            parameter.copy_(drawn + 1 if name.endswith("norm.weight") else drawn)
        wanted = whole.language_model(torch.from_numpy(TOKENS)).logits.numpy()
    whole.save_pretrained(tmp_path / "hf")
    np.testing.assert_allclose(answers(tmp_path / "hf"), wanted, atol=1e-4)
    load(tmp_path / "hf", text_only=True).save(tmp_path / "saved")
    written = [(tmp_path / place / "model.safetensors").read_bytes() for place in ("hf", "saved")]
    assert written[0] == written[1]
    convert(tmp_path / "hf", Order(tmp_path / "mlx", "mlx"), Wish())
    np.testing.assert_allclose(answers(tmp_path / "mlx"), wanted, atol=1e-4)
