"""Adapters that begin as a part of the base's weights: plain ones once PEFT has made them so, and refused before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.logits import SIZES, Array, assert_close, whole
from weightloom.engine.errors import ConfigError
from weightloom.runtime.loading.loading import load

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def of_model(model: Any, tokens: Array) -> Array:
    import torch

    with torch.no_grad():
        found: Array = model(torch.tensor(tokens)).logits.numpy()
    return found


@pytest.mark.parametrize("begun", ["pissa", "olora"])
def test_it_is_converted_to_one_of_the_base_as_it_is(begun: Any, tmp_path: Path) -> None:
    import peft
    import torch
    import transformers

    model: Any = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).float().eval()
    model.save_pretrained(tmp_path / "base")
    tokens = np.random.default_rng(7).integers(0, SIZES["vocab_size"], (2, 12))
    plain = of_model(model, tokens)
    wanted = peft.LoraConfig(
        r=3, lora_alpha=6, target_modules=["q_proj", "down_proj"], init_lora_weights=begun, task_type="CAUSAL_LM"
    )
    made: Any = peft.get_peft_model(model, wanted)
    made.peft_config["default"].init_lora_weights = True
    made.save_pretrained(str(tmp_path / "begun"))
    made.peft_config["default"].init_lora_weights = begun
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if ".lora_" in name:
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)) / 3)
    trained = of_model(made, tokens)
    made.save_pretrained(str(tmp_path / "raw"))
    made.save_pretrained(str(tmp_path / "plain"), path_initial_model_for_weight_conversion=str(tmp_path / "begun"))
    with pytest.raises(
        ConfigError, match=f"init_lora_weights is '{begun}'[^$]*path_initial_model_for_weight_conversion"
    ):
        load(tmp_path / "base", adapter=tmp_path / "raw")
    assert np.abs(trained - plain).max() > 1e-2
    assert_close(whole(load(tmp_path / "base", adapter=tmp_path / "plain").model, tokens), trained)
