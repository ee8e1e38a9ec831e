"""convert --quantize and --dequantize: MLX's words, a config that says so, what is refused and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.runtime.quantizing.models import arrays_in, assert_same, config_in, logits, packable, packed_parts
from tests.runtime.support import Cli
from weightloom.engine.quantizing.quantization import Quantization

RECIPES = {
    "2bit": Quantization(2, 64),
    "3bit": Quantization(3, 64),
    "4bit": Quantization(4, 64),
    "5bit": Quantization(5, 64),
    "6bit": Quantization(6, 64),
    "8bit": Quantization(8, 64),
    "mxfp4": Quantization(4, 32, "mxfp4"),
    "mxfp8": Quantization(8, 32, "mxfp8"),
    "nvfp4": Quantization(4, 16, "nvfp4"),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_words_are_mlxs_and_the_config_says_how(cli: Cli, tmp_path: Path, recipe: str) -> None:
    source, how = packable(tmp_path / "source"), RECIPES[recipe]
    ran = cli("convert", source, tmp_path / "out", "--quantize", recipe)
    assert ran.code == 0, ran
    section = {"group_size": how.group_size, "bits": how.bits, "mode": how.mode}
    config = config_in(tmp_path / "out")
    assert config["quantization"] == config["quantization_config"] == section
    expected = {}
    for name, array in arrays_in(source).items():
        expected |= packed_parts(name, array, how) if array.ndim > 1 else {name: array}
    found = arrays_in(tmp_path / "out")
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert_same(found[name], array, name)
    assert f"quantized: 23 modules to {how}" in ran.out
    assert wl.load(tmp_path / "out").notes == ()


def test_loaded_it_answers_as_the_unpacked_matrices_do(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source", "qwen3_moe")
    assert cli("convert", source, tmp_path / "q", "--quantize", "mixed_3_6").code == 0
    assert cli("convert", tmp_path / "q", tmp_path / "dense", "--dequantize").code == 0
    quantized, dense = wl.load(tmp_path / "q"), wl.load(tmp_path / "dense")
    np.testing.assert_allclose(logits(quantized.model), logits(dense.model), rtol=1e-3, atol=1e-3)
    assert np.abs(logits(quantized.model) - logits(wl.load(source).model)).max() > 1


@pytest.mark.case("C74")
@pytest.mark.parametrize("layout", ["original", "hf", "mlx"])
@pytest.mark.parametrize("name", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
def test_c74_unpacked_there_is_no_trace_in_the_config(cli: Cli, tmp_path: Path, name: str, layout: str) -> None:
    """C74: neither section remains, all is dense, and it loads again."""
    source = packable(tmp_path / "source", name)
    assert cli("convert", source, tmp_path / "q", "--quantize", "8bit").code == 0
    ran = cli("convert", tmp_path / "q", tmp_path / "dense", "--dequantize", "--layout", layout)
    assert ran.code == 0, ran
    assert {"quantization", "quantization_config"} & config_in(tmp_path / "dense").keys() == set()
    assert all(array.dtype == mx.float32 for array in arrays_in(tmp_path / "dense").values())
    if layout == "hf":
        assert set(arrays_in(tmp_path / "dense")) == set(arrays_in(source))
    np.testing.assert_allclose(
        logits(wl.load(tmp_path / "dense").model), logits(wl.load(tmp_path / "q").model), rtol=1e-3, atol=1e-3
    )


def test_unpacked_in_the_published_layout_nothing_is_said_to_stay_packed(cli: Cli, tmp_path: Path) -> None:
    assert cli("convert", packable(tmp_path / "source"), tmp_path / "q", "--quantize", "4bit").code == 0
    assert "23 modules stay packed" in cli("convert", tmp_path / "q", tmp_path / "hf", "--layout", "hf").out
    assert "stay packed" not in cli("convert", tmp_path / "q", tmp_path / "d", "--layout", "hf", "--dequantize").out


def test_a_model_in_parts_unpacks_to_the_dtype_asked_for(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    assert cli("convert", source, tmp_path / "q", "--quantize", "mxfp4").code == 0
    assert cli("convert", tmp_path / "q", tmp_path / "dense", "--dequantize", "--dtype", "f16").code == 0
    assert {array.dtype for array in arrays_in(tmp_path / "dense").values()} == {mx.float16}
    assert config_in(tmp_path / "dense")["torch_dtype"] == "float16"


def test_floats_are_cast_before_they_are_packed(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    assert cli("convert", source, tmp_path / "out", "--quantize", "4bit", "--dtype", "bf16").code == 0
    name = "model.layers.0.mlp.up_proj.weight"
    for part, array in packed_parts(name, arrays_in(source)[name].astype(mx.bfloat16), Quantization(4, 64)).items():
        assert_same(arrays_in(tmp_path / "out")[part], array, part)


def test_what_is_quantized_is_not_again_unless_that_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    assert cli("convert", source, tmp_path / "q", "--quantize", "8bit").code == 0
    refused = cli("convert", tmp_path / "q", tmp_path / "out", "--quantize", "4bit")
    assert refused.code == 2
    assert "23 modules are quantized already" in refused.err
    assert "--requantize" in refused.err
    assert not (tmp_path / "out").exists()
    assert cli("convert", tmp_path / "q", tmp_path / "out", "--quantize", "4bit", "--requantize").code == 0
    name = "lm_head.weight"
    words, scales, biases = packed_parts(name, arrays_in(source)[name], Quantization(8, 64)).values()
    once = mx.dequantize(words, scales, biases, group_size=64, bits=8)
    for part, array in packed_parts(name, once, Quantization(4, 64)).items():
        assert_same(arrays_in(tmp_path / "out")[part], array, part)


def test_what_each_module_loses_is_told_on_request(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    assert "lost" not in cli("convert", source, tmp_path / "one", "--quantize", "4bit").out
    ran = cli("convert", source, tmp_path / "out", "--quantize", "4bit", "--measure", "--json")
    told = {each["matrix"]: each["error"] for each in ran.data["rounding"]}
    assert len(told) == 23
    for name in ("lm_head.weight", "model.layers.2.mlp.down_proj.weight"):
        plain = arrays_in(source)[name]
        back = mx.dequantize(*packed_parts(name, plain, Quantization(4, 64)).values(), group_size=64, bits=4)
        error = mx.linalg.norm(plain - back) / mx.linalg.norm(plain)
        assert told[name] == pytest.approx(float(error.item()), rel=1e-4)
    shown = cli("convert", source, tmp_path / "two", "--quantize", "4bit", "--measure").out
    assert "lm_head.weight: 4 bits in groups of 64 (affine): " in shown


def test_rows_that_do_not_divide_stay_dense_and_are_told(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source", intermediate_size=72)
    ran = cli("convert", source, tmp_path / "out", "--quantize", "4bit")
    assert ran.code == 0
    assert "rows of 72 do not divide into groups of 64" in ran.out
    found = arrays_in(tmp_path / "out")
    assert_same(found["model.layers.0.mlp.down_proj.weight"], arrays_in(source)["model.layers.0.mlp.down_proj.weight"])
    assert "model.layers.0.mlp.up_proj.scales" in found
    np.testing.assert_array_equal(logits(wl.load(tmp_path / "out").model).shape, (1, 5, 260))


def test_routers_stay_dense_and_are_told(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source", "qwen3_moe")
    ran = cli("convert", source, tmp_path / "out", "--quantize", "4bit")
    assert "kept dense by the recipe: 'model.layers.0.mlp.gate', 'model.layers.2.mlp.gate'" in ran.out
    assert "model.layers.0.mlp.gate.scales" not in arrays_in(tmp_path / "out")


def test_a_recipe_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source", "qwen3_moe")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "schema: 1\nrecipe: mine\nmodules:\n"
        "- {pattern: '**.experts.*', mode: mxfp4}\n"
        "- {pattern: '**.q_proj', keep: dense}\n"
        "- {pattern: 'model.layers.*.self_attn.*', when: 'layer == layers - 1', bits: 8, group_size: 32}\n"
        "tensors:\n- {pattern: '**.q_norm.weight', dtype: keep}\n- {pattern: '**.gate.weight', dtype: f32}\n"
    )
    ran = cli("convert", source, tmp_path / "out", "--quantize", recipe, "--dtype", "bf16")
    assert ran.code == 0, ran
    found, config = arrays_in(tmp_path / "out"), config_in(tmp_path / "out")
    assert found["model.layers.2.mlp.switch_mlp.up_proj.scales"].dtype == mx.uint8
    assert found["model.layers.2.self_attn.v_proj.scales"].shape[-1] == 2
    assert found["model.layers.2.self_attn.q_proj.weight"].dtype == mx.bfloat16
    assert found["model.layers.1.self_attn.v_proj.weight"].dtype == mx.bfloat16
    assert found["model.layers.1.self_attn.q_norm.weight"].dtype == mx.float32
    assert found["model.layers.0.mlp.gate.weight"].dtype == mx.float32
    assert found["model.norm.weight"].dtype == mx.bfloat16
    assert config["quantization"]["model.layers.2.self_attn.v_proj"] == {"group_size": 32, "bits": 8, "mode": "affine"}
    assert config["quantization"]["mode"] == "mxfp4"
    assert wl.load(tmp_path / "out").notes == ()
    assert "keep their dtype by the recipe: model.layers.*.self_attn.q_norm.weight" in ran.out
    assert "F32 by the recipe: model.layers.*.mlp.gate.weight" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quantize", "4bits"], "there is no recipe '4bits'"),
        (["--quantize", "none.yaml"], "none.yaml"),
        (["--requantize"], "--requantize without --quantize"),
        (["--dequantize", "--quantize", "4bit"], "--dequantize beside --quantize"),
    ],
)
def test_what_cannot_be_asked_is_refused(cli: Cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    source = packable(tmp_path / "source")
    ran = cli("convert", source, tmp_path / "out", *arguments)
    assert ran.code in (2, 3)
    assert message in ran.err
    assert not (tmp_path / "out").exists()


def test_a_recipe_that_finds_nothing_is_refused(cli: Cli, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("schema: 1\nrecipe: mine\nmodules:\n- {pattern: '**.up', bits: 4}\n")
    ran = cli("convert", packable(tmp_path / "source"), tmp_path / "out", "--quantize", recipe)
    assert ran.code == 2
    assert "the recipe mine quantizes none of 23 modules" in ran.err
    assert f"no module for the rule **.up ({recipe}:4:3)" in ran.err


def test_without_an_architecture_nothing_says_what_can_be_quantized(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source")
    config = config_in(source)
    (source / "config.json").write_text(
        json.dumps({**config, "model_type": "vaultgemma", "architectures": ["VaultGemmaForCausalLM"]})
    )
    ran = cli("convert", source, tmp_path / "out", "--quantize", "4bit")
    assert ran.code == 2
    assert "nothing says which modules can be quantized" in ran.err


def test_in_the_published_layout_stacks_stay_whole_and_load(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source", "qwen3_moe")
    for layout in ("hf", "mlx"):
        assert cli("convert", source, tmp_path / layout, "--quantize", "4bit", "--layout", layout).code == 0
    one, other = (logits(wl.load(tmp_path / layout).model) for layout in ("hf", "mlx"))
    np.testing.assert_array_equal(one, other)
