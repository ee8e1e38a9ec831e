"""GGUF against Transformers' own reading of the same file: every weight, and the ids of odd texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests import smollm2
from weightloom.engine import build_plan
from weightloom.engine.gguf import open_gguf, read_gguf
from weightloom.rules import load_rules
from weightloom.runtime.gguf.config import gguf_config
from weightloom.runtime.gguf.rope import llama3_divisors
from weightloom.runtime.gguf.tokenizer import gguf_tokenizer

pytestmark = pytest.mark.oracle

TEXTS = [
    "",
    " ",
    "Hello world's 12345  x\n\ny!?  ",
    "def f(x):\n\treturn x ** 2  # ok\r\n",
    "naïve Ünïcode ﬁ 你好，世界 🤷🏽‍♀️ \u00a0 end",
    "<|im_start|>user\nhi<|im_end|>\n<repo_name>x",
    # Not ½: the published tokenizer splits it off as a digit, and Transformers' reading of GGUF does not.
    "I'LL they'd 3.14159 1/2",
]


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest) -> Path:
    return smollm2.fetch(request.config.cache.mkdir("smollm2"))


def unpacked(name: str, loaded: dict[str, mx.array], bits: int) -> np.ndarray[Any, Any]:
    """Give a parameter's values in float32."""
    stem = name.removesuffix(".weight")
    if f"{stem}.scales" not in loaded:
        return np.array(loaded[name])
    scales, biases = (loaded[f"{stem}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
    with mx.stream(mx.cpu):
        return np.array(mx.dequantize(loaded[name], scales, biases, 32, bits))


def reference_weights(model: Path) -> dict[str, Any]:
    """What `from_pretrained(gguf_file=...)` puts into a model, without the packages that it asks for beside."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model.parent, gguf_file=model.name))
    found: dict[str, Any] = load_gguf_checkpoint(model, return_tensors=True, model_to_load=empty)["tensors"]
    return found


def test_every_weight_is_that_of_the_reference(model: Path) -> None:
    theirs = reference_weights(model)
    checkpoint = open_gguf(model)
    config = gguf_config(read_gguf(model), checkpoint)
    loaded = build_plan(checkpoint, load_rules("llama", layout="gguf"), config=config).load()
    assert theirs.keys() == {name for name in loaded if not name.endswith((".scales", ".biases"))}
    for name, weight in theirs.items():
        bits = 8 if name == "model.embed_tokens.weight" else 4
        assert np.array_equal(unpacked(name, loaded, bits), weight.numpy()), name


def test_the_config_is_that_of_the_reference(model: Path) -> None:
    from transformers import AutoConfig

    theirs = AutoConfig.from_pretrained(model.parent, gguf_file=model.name)
    ours = gguf_config(read_gguf(model), open_gguf(model))
    fields = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    fields += ("vocab_size", "max_position_embeddings", "tie_word_embeddings", "bos_token_id", "eos_token_id")
    assert {name: ours[name] for name in fields} == {name: getattr(theirs, name) for name in fields}
    assert ours["rope_theta"] == theirs.rope_parameters["rope_theta"]
    assert ours["rms_norm_eps"] == pytest.approx(theirs.rms_norm_eps, rel=1e-6)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_the_reference(model: Path, text: str) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name)
    ours = gguf_tokenizer(read_gguf(model))
    assert ours.encode(text) == theirs(text)["input_ids"]


def test_divisors_are_those_of_the_reference() -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0}
    rope |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    config = LlamaConfig(hidden_size=256, num_attention_heads=4, max_position_embeddings=131072, rope_parameters=rope)
    theirs, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 500000.0 ** (-np.arange(32) / 32)
    assert np.allclose(plain / theirs.numpy(), llama3_divisors(500000.0, 32, 32.0, 8192), rtol=1e-5)
