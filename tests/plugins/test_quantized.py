"""Putting quantized modules in: names, shapes, values, and what is refused."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from tests.plugins.tiny import CONFIGS
from weightloom.engine.errors import ConfigError
from weightloom.engine.quantizing.quantization import AFFINE_BITS, AFFINE_GROUPS, BLOCK_MODES
from weightloom.plugins.architectures.llama import build, read_llama
from weightloom.plugins.architectures.mixtral import build as build_mixtral
from weightloom.plugins.architectures.mixtral import read_config as read_mixtral
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.modules.binding import bind, param_specs
from weightloom.plugins.modules.packed_products import refuse_unrunnable, runs
from weightloom.plugins.modules.quantized import Quantization, matrices, quantize, widths

FOUR = Quantization(4, 32)


def tiny(**changes: object) -> CausalLM:
    return build(read_llama({**CONFIGS["llama"], "intermediate_size": 64, **changes}))


def test_modules_are_replaced_where_asked() -> None:
    module = tiny(attention_bias=True)
    paths = ["model.embed_tokens", "model.layers.2.self_attn.q_proj", "lm_head"]
    quantize(module, dict.fromkeys(paths, FOUR))
    specs = param_specs(module)
    assert str(specs["model.layers.2.self_attn.q_proj.weight"]) == "U32 [32, 4]"
    assert specs["model.layers.2.self_attn.q_proj.scales"].shape == (32, 1)
    assert specs["model.layers.2.self_attn.q_proj.biases"].shape == (32, 1)
    assert specs["model.layers.2.self_attn.q_proj.bias"].shape == (32,)
    assert isinstance(module.model.embed_tokens, nn.QuantizedEmbedding)
    assert isinstance(module.lm_head, nn.QuantizedLinear)
    assert str(specs["model.layers.1.self_attn.q_proj.weight"]) == "F32 [32, 32]"


@pytest.mark.parametrize("tied", [False, True])
def test_logits_are_those_of_the_unpacked_matrices(tied: bool) -> None:
    plain, packed = tiny(tie_word_embeddings=tied), tiny(tie_word_embeddings=tied)
    paths = [path for path, each in plain.named_modules() if isinstance(each, nn.Linear | nn.Embedding)]
    quantize(packed, dict.fromkeys(paths, FOUR))
    arrays = {}
    for path in paths:
        parts = mx.quantize(mx.random.normal(plain_weight(plain, path).shape), 32, 4)
        arrays |= {f"{path}.{part}": array for part, array in zip(("weight", "scales", "biases"), parts, strict=True)}
        plain.load_weights([(f"{path}.weight", mx.dequantize(*parts, group_size=32, bits=4))], strict=False)
    rest = {name: mx.ones(spec.shape) for name, spec in param_specs(packed).items() if name not in arrays}
    bind(packed, {**arrays, **rest})
    ids = mx.array([[1, 2, 3, 4]])
    np.testing.assert_allclose(np.array(packed(ids)), np.array(plain(ids)), rtol=1e-3, atol=1e-3)


def plain_weight(module: nn.Module, path: str) -> mx.array:
    weight: mx.array = dict(module.named_modules())[path].weight
    return weight


def test_stacks_of_experts() -> None:
    module = build_mixtral(read_mixtral({**CONFIGS["mixtral"], "intermediate_size": 64}))
    stacks = [f"model.layers.1.mlp.experts.{name}" for name in ("gate_up_proj", "down_proj")]
    quantize(module, {path: Quantization(8, 32) for path in stacks})
    specs = param_specs(module)
    assert str(specs[stacks[0]]) == "U32 [4, 128, 8]"
    assert specs[f"{stacks[1]}_scales"].shape == (4, 32, 2)
    assert module(mx.array([[1, 2]])).shape == (1, 2, 32)


@pytest.mark.parametrize(
    ("path", "how"),
    [
        ("model.layers.9.mlp.up_proj", FOUR),
        ("model.layers.0.mlp.up_proj.weight", FOUR),
        ("model.norm", FOUR),
        ("", FOUR),
        ("lm_head", Quantization(7, 32)),
        ("lm_head", Quantization(4, 64)),
        ("lm_head", Quantization(4, 32, "nf4")),
    ],
)
def test_what_cannot_be_quantized_is_named(path: str, how: Quantization) -> None:
    with pytest.raises(ConfigError) as caught:
        quantize(tiny(), {path: how})
    assert caught.value.field == path


def test_what_can_be_packed_is_listed_by_path_until_it_is() -> None:
    module = build_mixtral(read_mixtral({**CONFIGS["mixtral"], "intermediate_size": 64}))
    stack = "model.layers.1.mlp.experts.down_proj"
    assert matrices(module)[stack] == (4, 32, 64)
    assert widths(module)["model.layers.0.self_attn.v_proj"] == 32
    assert "model.norm" not in matrices(module)
    before = set(matrices(module))
    quantize(module, {stack: FOUR, "lm_head": FOUR})
    assert before - set(matrices(module)) == {stack, "lm_head"}
    assert set(matrices(module)) < before


@pytest.mark.parametrize("stacked", [False, True])
def test_all_that_mlx_has_runs_on_the_cpu_and_nothing_else(stacked: bool) -> None:
    ways = [Quantization(bits, size) for bits in AFFINE_BITS for size in AFFINE_GROUPS]
    ways += [Quantization(*pair, mode) for mode, pair in BLOCK_MODES.items()]
    assert all(runs(how, stacked, "cpu") for how in ways)
    others = [Quantization(7, 32), Quantization(4, 16), Quantization(4, 64, "mxfp4"), Quantization(8, 16, "nvfp4")]
    assert not any(runs(how, stacked, "cpu") for how in others)


@pytest.mark.parametrize(
    ("path", "what"), [("model.layers.0.mlp.experts.down_proj", "a stack"), ("lm_head", "a matrix")]
)
def test_what_mlx_cannot_run_is_refused_by_name(path: str, what: str) -> None:
    shapes = {path: (4, 32, 64) if what == "a stack" else (32, 64)}
    with pytest.raises(ConfigError, match=f"{path} has 7 bits .* does not compute with {what}") as caught:
        refuse_unrunnable({path: Quantization(7, 32)}, shapes)
    assert caught.value.tensor == path
