"""Changes of low rank beside parameters: against the same layer with the product added to its matrix."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.tiny import CONFIGS
from weightloom.engine import PlanError
from weightloom.plugins import PluginManager, param_specs
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.lora import LowRank
from weightloom.plugins.layers.terms import Dial, Made, Term
from weightloom.plugins.modules.adapters import attach, packed_names, unchangeable, unpacked_specs
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.quantized import Quantization, quantize

HOW = Quantization(bits=8, group_size=32)


def low_rank(shape: tuple[int, ...], rank: int = 2, scale: float = 0.5, dial: Dial | None = None, seed: int = 0) -> Any:
    """Random factors of a change of a parameter of a shape."""
    key = mx.random.key(seed)
    a = mx.random.normal((*shape[:-2], rank, shape[-1]), key=key)
    b = mx.random.normal((*shape[:-1], rank), key=mx.random.split(key)[0])
    return LowRank(a, b, scale, dial or Dial())


def added(layer: nn.Module, name: str, *terms: LowRank) -> None:
    """Add products to a matrix itself."""
    layer[name] = layer[name] + sum(term.now * (term.b @ term.a) for term in terms)


def equal(one: mx.array, other: mx.array) -> bool:
    return bool(mx.array_equal(one, other))


def close(one: mx.array, other: mx.array) -> bool:
    return np.allclose(np.array(one), np.array(other), atol=1e-4)


@given(rows=st.integers(1, 5), columns=st.integers(1, 5), rank=st.integers(1, 3), bias=st.booleans())
def test_a_linear_layer(rows: int, columns: int, rank: int, bias: bool) -> None:
    x, layer = mx.random.normal((2, 3, columns)), nn.Linear(columns, rows, bias)
    plain, terms = layer(x), (low_rank((rows, columns), rank), low_rank((rows, columns), 1, -2.0, seed=3))
    attach_one(layer, "weight", *terms)
    made = layer(x)
    for term in terms:
        term.dial.scale = 0.0
    assert equal(layer(x), plain)
    merged = nn.Linear(columns, rows, bias)
    merged.update(layer.parameters())
    for term in terms:
        term.dial.scale = 1.0
    added(merged, "weight", *terms)
    assert close(made, merged(x))


def attach_one(layer: nn.Module, name: str, *terms: Term) -> None:
    root = nn.Module()
    root.inner = layer
    attach(root, {f"inner.{name}": terms})


def test_an_embedding_and_its_use_as_a_head() -> None:
    layer, merged, term = nn.Embedding(6, 4), nn.Embedding(6, 4), low_rank((6, 4))
    merged.update(layer.parameters())
    added(merged, "weight", term)
    attach_one(layer, "weight", term)
    tokens, x = mx.array([[5, 0, 2]]), mx.random.normal((1, 3, 4))
    assert close(layer(tokens), merged(tokens))
    assert close(layer.as_linear(x), merged.as_linear(x))


@pytest.mark.parametrize("tokens", [3, 50])
@pytest.mark.parametrize("name", ["gate_up_proj", "down_proj"])
def test_experts_few_tokens_and_many(name: str, tokens: int) -> None:
    layer, merged = (Experts(4, 8, 6, activation("silu")) for _ in range(2))
    layer.update({key: mx.random.normal(array.shape) for key, array in layer.parameters().items()})
    merged.update(layer.parameters())
    term = low_rank(layer[name].shape)
    x, chosen = mx.random.normal((tokens, 8)), mx.random.randint(0, 4, (tokens, 2))
    plain = layer(x, chosen)
    added(merged, name, term)
    attach_one(layer, name, term)
    assert np.allclose(np.array(layer(x, chosen)), np.array(merged(x, chosen)), atol=1e-3)
    term.dial.scale = 0.0
    assert equal(layer(x, chosen), plain)


def test_packed_layers() -> None:
    """What is added does not depend on how the matrix is stored."""
    root = nn.Module()
    root.linear, root.embedding = nn.Linear(32, 4), nn.Embedding(6, 32)
    nn.quantize(root, 32, 8)
    assert set(packed_names(root)) == {"linear.weight", "embedding.weight"}
    x, tokens = mx.random.normal((2, 32)), mx.array([1, 5])
    plain = root.linear(x), root.embedding(tokens)
    terms = {name: low_rank(spec.shape) for name, spec in unpacked_specs(root).items() if name.endswith("weight")}
    attach(root, {name: (term,) for name, term in terms.items()})
    nothing = Made(plain[0], lambda x: x)
    assert close(root.linear(x), plain[0] + terms["linear.weight"].times(x, nothing))
    assert close(root.embedding(tokens), plain[1] + terms["embedding.weight"].rows(tokens, nothing))


def test_packed_stacks() -> None:
    root = nn.Module()
    root.experts = Experts(3, 32, 32, activation("silu"))
    dense = unpacked_specs(root)
    quantize(root, {"experts.gate_up_proj": HOW, "experts.down_proj": HOW})
    assert packed_names(root) == ("experts.gate_up_proj", "experts.down_proj")
    assert {name: spec.shape for name, spec in unpacked_specs(root).items()} == {
        name: spec.shape for name, spec in dense.items()
    }
    x, chosen = mx.random.normal((2, 32)), mx.array([[0, 2], [1, 1]])
    plain = root.experts(x, chosen)
    attach(root, {"experts.down_proj": (low_rank((3, 32, 32), dial=Dial(0.0)),)})
    assert equal(root.experts(x, chosen), plain)


@pytest.mark.parametrize("name", ["llama", "mixtral", "qwen3_moe"])
def test_parameters_and_their_names_stay(name: str) -> None:
    architecture = PluginManager().architecture(name)
    module = architecture.build(architecture.read_config(CONFIGS[name]))
    specs, before = param_specs(module), parameters(module)
    wanted = [key for key, spec in specs.items() if len(spec.shape) > 1]
    assert unpacked_specs(module) == specs
    assert unchangeable(module, wanted) == ()
    attach(module, {key: (low_rank(specs[key].shape),) for key in wanted})
    after = parameters(module)
    assert list(after) == list(before)
    assert all(after[key] is before[key] for key in before)


def test_what_takes_no_factors_is_named_before_anything_is_put() -> None:
    architecture = PluginManager().architecture("llama")
    module = architecture.build(architecture.read_config(CONFIGS["llama"]))
    kinds = {path: type(layer) for path, layer in module.named_modules()}
    names = ["model.layers.0.self_attn.q_proj.weight", "model.norm.weight", "model.nowhere.weight"]
    with pytest.raises(PlanError, match=r"beside model\.norm\.weight, model\.nowhere\.weight"):
        attach(module, {name: (low_rank((32, 32)),) for name in names})
    assert {path: type(layer) for path, layer in module.named_modules()} == kinds


def test_what_comes_out_has_the_layer_s_dtype() -> None:
    layer = nn.Linear(4, 3)
    layer.set_dtype(mx.bfloat16)
    attach_one(layer, "weight", low_rank((3, 4)))
    assert layer(mx.ones((1, 4), mx.bfloat16)).dtype == mx.bfloat16
