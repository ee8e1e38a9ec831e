"""Products on one input computed as one: the same answers, the same names and bytes, and no stale arrays."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.plugins.tiny import CONFIGS
from weightloom.engine.carrier import memory_of
from weightloom.engine.errors import UsageError
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.fusing import compile_steps, fuse
from weightloom.plugins.testing import Sample, write_checkpoint
from weightloom.runtime import load

TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6]])
BIASED = {"attention_bias": True, "mlp_bias": True}


@pytest.fixture(params=["llama", "qwen3_moe", "biases"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name = "llama" if request.param == "biases" else request.param
    config = {**CONFIGS[name], "intermediate_size": 64, **(BIASED if request.param == "biases" else {})}
    write_checkpoint(Sample("tiny", config), PluginManager().architecture(name), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("how", [{}, {"quantize": "mxfp4"}], ids=str)
def test_the_answers_are_the_same(folder: Path, how: dict[str, Any]) -> None:
    plain, fused = load(folder, fuse=False, **how), load(folder, fuse=True, **how)
    assert mx.allclose(fused.model(TOKENS), plain.model(TOKENS), atol=1e-5)
    ours, theirs = parameters(fused.model), parameters(plain.model)
    assert {name: bytes(memory_of(array)) for name, array in ours.items()} == {
        name: bytes(memory_of(array)) for name, array in theirs.items()
    }


def test_parameters_are_parts_of_one_array(folder: Path) -> None:
    m = load(folder, fuse=True)
    attention = m.model.model.layers[0].self_attn
    starts = [address(each.weight) for each in (attention.q_proj, attention.k_proj, attention.v_proj)]
    assert starts[1] - starts[0] == attention.q_proj.weight.nbytes
    assert starts[2] - starts[1] == attention.k_proj.weight.nbytes


def address(array: mx.array) -> int:
    return int(np.frombuffer(memoryview(array), np.uint8).__array_interface__["data"][0])


def test_a_save_is_byte_for_byte_what_was_read(folder: Path, tmp_path: Path) -> None:
    load(folder, fuse=True).save(tmp_path / "again")
    for file in folder.glob("*.safetensors"):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_an_array_that_is_replaced_counts(folder: Path) -> None:
    m = load(folder, fuse=True)
    before = m.model(TOKENS)
    attention = m.model.model.layers[0].self_attn
    attention.k_proj.weight = attention.k_proj.weight * 2
    changed = m.model(TOKENS)
    assert not mx.allclose(changed, before)
    assert fuse(m.model)
    assert mx.allclose(m.model(TOKENS), changed, atol=1e-5)


def test_what_is_packed_in_two_ways_stays_apart(folder: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mixed.yaml"
    recipe.write_text(
        "schema: 1\nrecipe: mixed\nabout: 'k in 8 bits.'\nmodules:\n"
        "  - {pattern: '**.k_proj', bits: 8, group_size: 32}\n  - {pattern: '**.gate', keep: dense, optional: true}\n"
        "  - {pattern: '**', bits: 4, group_size: 32}\n"
    )
    plain, fused = (load(folder, fuse=each, quantize=recipe) for each in (False, True))
    assert not [path for path in fuse(fused.model) if path.endswith("self_attn")]
    assert mx.allclose(fused.model(TOKENS), plain.model(TOKENS), atol=1e-5)


def test_lazy_and_fused_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="lazy and fuse"):
        load(folder, lazy=True, fuse=True)


def test_compiled_steps_answer_as_plain_ones_and_follow_their_parameters(folder: Path) -> None:
    m = load(folder, fuse=True)
    assert len(compile_steps(m.model)) == 3
    assert mx.allclose(one_by_one(m.model), m.model(TOKENS), atol=1e-5)
    attention = m.model.model.layers[0].self_attn
    attention.q_proj.weight = attention.q_proj.weight * 3
    assert mx.allclose(one_by_one(m.model), m.model(TOKENS), atol=1e-5)


def one_by_one(model: Any) -> mx.array:
    # Not every machine has a compiler; what the two functions are made of is the same.
    mx.disable_compile()
    try:
        cache = model.make_cache()
        return mx.concatenate([model(token, cache) for token in mx.split(TOKENS, TOKENS.shape[1], axis=1)], axis=1)
    finally:
        mx.enable_compile()
