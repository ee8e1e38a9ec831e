"""load(quantize=...): the same words as a conversion writes, lazily too, cut among ranks, and saved again."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

import weightloom as wl
from tests.runtime.quantizing.models import arrays_in, assert_same, config_in, logits, packable, packed_parts
from tests.runtime.support import Cli
from weightloom.engine.errors import NotInvertible, UsageError
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.plugins.modules.binding import parameters
from weightloom.rules.recipe_file import find_recipe
from weightloom.runtime import Fusing


@pytest.mark.parametrize("recipe", ["4bit", "mxfp4", "nvfp4", "mixed_3_6"])
@pytest.mark.parametrize("name", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
def test_it_is_the_model_that_a_conversion_writes(cli: Cli, tmp_path: Path, name: str, recipe: str) -> None:
    source = packable(tmp_path / "source", name)
    assert cli("convert", source, tmp_path / "out", "--quantize", recipe).code == 0
    m, converted = wl.load(source, quantize=recipe), wl.load(tmp_path / "out")
    found, expected = parameters(m.model), parameters(converted.model)
    assert set(found) == set(expected)
    for key, array in expected.items():
        assert_same(found[key], array, key)
    assert any(note.startswith("quantized: ") for note in m.notes)
    assert m.plan.nbytes == sum(array.nbytes for array in found.values())


def test_lazily_only_what_is_used_is_packed(tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    m, whole = wl.load(source, quantize="4bit", lazy=True), wl.load(source, quantize=find_recipe("4bit"))
    assert isinstance(m.model.lm_head, nn.QuantizedLinear)
    np.testing.assert_array_equal(logits(m.model), logits(whole.model))


@pytest.mark.parametrize("layout", ["hf", "mlx"])
@pytest.mark.parametrize("name", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
def test_saved_in_a_named_layout_it_loads_again(tmp_path: Path, name: str, layout: str) -> None:
    m = wl.load(packable(tmp_path / "source", name), quantize="mixed_4_6")
    m.save(tmp_path / "out", layout=layout)
    again = wl.load(tmp_path / "out")
    assert again.notes == ()
    np.testing.assert_array_equal(logits(again.model), logits(m.model))
    section = config_in(tmp_path / "out")["quantization"]
    names = arrays_in(tmp_path / "out")
    stack = "switch_mlp.down_proj" if layout == "mlx" and name == "qwen3_moe" else "down_proj"
    assert [key for key in section if key.endswith(stack)]
    assert all(f"{key}.scales" in names or f"{key}_scales" in names for key in section if "." in key)


def test_the_published_form_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    m = wl.load(packable(tmp_path / "source"), quantize="4bit")
    with pytest.raises(NotInvertible, match=r"quantizing rounds to 4 bits"):
        m.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.case("C74")
def test_dense_unpacks_what_the_files_hold_and_can_be_written_both_ways(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    assert cli("convert", source, tmp_path / "q", "--quantize", "4bit").code == 0
    packed, dense = wl.load(tmp_path / "q"), wl.load(tmp_path / "q", quantize="dense")
    assert isinstance(dense.model.lm_head, nn.Linear)
    assert not isinstance(dense.model.lm_head, nn.QuantizedLinear)
    np.testing.assert_allclose(logits(dense.model), logits(packed.model), rtol=1e-3, atol=1e-3)
    dense.save(tmp_path / "plain", layout="mlx")
    assert {"quantization", "quantization_config"} & config_in(tmp_path / "plain").keys() == set()
    np.testing.assert_array_equal(logits(wl.load(tmp_path / "plain").model), logits(dense.model))
    # The source's own bytes are still at hand.
    dense.save(tmp_path / "back")
    assert (tmp_path / "back/model.safetensors").read_bytes() == (tmp_path / "q/model.safetensors").read_bytes()


def test_floats_are_cast_first_and_ties_go_together(tmp_path: Path) -> None:
    source = packable(tmp_path / "source", tie_word_embeddings=True)
    m = wl.load(source, quantize="8bit", dtype="bfloat16")
    name = "model.embed_tokens.weight"
    expected = packed_parts(name, arrays_in(source)[name].astype(mx.bfloat16), Quantization(8, 64))
    assert_same(parameters(m.model)[name], expected[name])
    m.save(tmp_path / "out", layout="mlx")
    for part, array in expected.items():
        assert_same(arrays_in(tmp_path / "out")[part], array, part)
    assert config_in(tmp_path / "out")["torch_dtype"] == "bfloat16"


@pytest.mark.parametrize(("given", "message"), [("4bits", "no recipe '4bits'"), (4, "quantize is int")])
def test_what_is_no_recipe_is_refused(tmp_path: Path, given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wl.load(packable(tmp_path / "source"), quantize=given)


def test_what_is_packed_already_is_refused_by_name(cli: Cli, tmp_path: Path) -> None:
    assert cli("convert", packable(tmp_path / "source"), tmp_path / "q", "--quantize", "4bit").code == 0
    with pytest.raises(UsageError, match="23 modules are quantized already, such as 'lm_head'"):
        wl.load(tmp_path / "q", quantize="8bit")


def test_an_adapter_stays_beside_what_is_packed(tmp_path: Path) -> None:
    from tests.cases.fixtures import filled
    from tests.cases.test_adapter_load import adapter

    source = packable(tmp_path / "source")
    q = "base_model.model.model.layers.0.self_attn.q_proj"
    factors = filled({f"{q}.lora_A.weight": (2, 64), f"{q}.lora_B.weight": (64, 2)})
    beside = wl.load(source, quantize="8bit", adapter=adapter(tmp_path / "adapter", factors))
    name = "model.layers.0.self_attn.q_proj"
    x = mx.random.normal((1, 64))
    change = 2.0 * x @ mx.array(factors[f"{q}.lora_A.weight"]).T @ mx.array(factors[f"{q}.lora_B.weight"]).T
    plain = dict(wl.load(source, quantize="8bit").model.named_modules())[name]
    found = dict(beside.model.named_modules())[name](x)
    np.testing.assert_allclose(np.array(found), np.array(plain(x) + change), rtol=1e-4, atol=1e-4)


def test_generate_quantizes_as_it_reads(cli: Cli, tmp_path: Path) -> None:
    from tests.runtime.models import add_tokenizer

    source = add_tokenizer(packable(tmp_path / "source"))
    ran = cli("generate", source, "--prompt", "ab", "--max-tokens", "2", "--quantize", "4bit", "--json")
    assert ran.code == 0, ran
    assert "quantized: 23 modules to 4 bits in groups of 64 (affine)" in ran.data["notes"]


PRUNING = """version: 1
operations:
- op: prune
  granularity: attention_head
  pattern: '**.self_attn.**'
  head_ids: [1, 3]
"""


def test_dense_unpacks_before_surgery_as_a_conversion_does(cli: Cli, tmp_path: Path) -> None:
    """Two heads of four are half a group of what is packed."""
    assert cli("convert", packable(tmp_path / "source"), tmp_path / "q", "--quantize", "4bit").code == 0
    surgery = tmp_path / "surgery.yaml"
    surgery.write_text(PRUNING)
    assert cli("convert", tmp_path / "q", tmp_path / "out", "--surgery", surgery, "--dequantize").code == 0
    m = wl.load(tmp_path / "q", surgery=surgery, quantize="dense")
    np.testing.assert_array_equal(logits(m.model), logits(wl.load(tmp_path / "out").model))


def test_dense_unpacks_before_adapters_are_fused_as_a_conversion_does(cli: Cli, tmp_path: Path) -> None:
    from tests.cases.fixtures import filled
    from tests.cases.test_adapter_load import adapter

    assert cli("convert", packable(tmp_path / "source"), tmp_path / "q", "--quantize", "4bit").code == 0
    q = "base_model.model.model.layers.0.self_attn.q_proj"
    factors = filled({f"{q}.lora_A.weight": (2, 64), f"{q}.lora_B.weight": (64, 2)})
    folder = adapter(tmp_path / "adapter", factors)
    m = wl.load(tmp_path / "q", adapter=Fusing(folder), quantize="dense")
    assert not [note for note in m.notes if "lost" in note]
    assert cli("convert", tmp_path / "q", tmp_path / "out", "--adapter", folder, "--dequantize").code == 0
    np.testing.assert_array_equal(logits(m.model), logits(wl.load(tmp_path / "out").model))
