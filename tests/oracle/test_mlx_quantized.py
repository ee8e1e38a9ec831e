"""MLX's quantized formats against mlx-lm: the same words, each loads the other's files, and these come back as bytes.

`python -m tests.oracle.test_mlx_quantized` prints the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.cases.fixtures import contents
from tests.runtime.quantizing.models import arrays_in, config_in, logits, packable
from weightloom.engine.quantizing.quantization import AFFINE_BITS, BLOCK_MODES, Quantization
from weightloom.rules.recipe_file import find_recipe, read_recipe
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.quantizing.wish import DEQUANTIZE, Quantizing

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

FORMATS = {f"affine {bits}": Quantization(bits, 64) for bits in AFFINE_BITS}
FORMATS |= {mode: Quantization(*pair, mode) for mode, pair in BLOCK_MODES.items()}
FAMILIES = ["llama", "qwen3_moe", "mixtral"]
MIXED = ["mixed_2_6", "mixed_3_4", "mixed_3_6", "mixed_4_6"]
Predicate = Callable[[str, Any], Any]


def no_router(path: str, module: Any) -> bool:
    return not path.endswith(".gate")


def theirs(source: Path, how: Quantization, target: Path, predicate: Predicate = no_router) -> Path:
    """What mlx-lm quantizes and saves."""
    from mlx_lm.utils import load_model, quantize_model, save_config, save_model

    model, config = load_model(source)
    model, config = quantize_model(model, config, how.group_size, how.bits, how.mode, quant_predicate=predicate)
    save_model(target, model)
    save_config(config, target / "config.json")
    return target


def ours(source: Path, how: Quantization, target: Path) -> Path:
    recipe = target.with_suffix(".yaml")
    settings = f"bits: {how.bits}, group_size: {how.group_size}, mode: {how.mode}"
    rules = f"- {{pattern: '**.gate', keep: dense, optional: true}}\n- {{pattern: '**', {settings}}}\n"
    recipe.write_text(f"schema: 1\nrecipe: one\nmodules:\n{rules}")
    convert(source, Order(target, quantizing=Quantizing(read_recipe(recipe))), Wish())
    return target


def peer_logits(folder: Path) -> Any:
    from mlx_lm.utils import load_model

    return logits(load_model(folder)[0])


def same_arrays(one: Path, other: Path) -> bool:
    found, expected = arrays_in(one), arrays_in(other)
    return set(found) == set(expected) and all(
        found[name].dtype == array.dtype and bool(mx.array_equal(found[name].view(mx.uint8), array.view(mx.uint8)))
        for name, array in expected.items()
    )


def row(name: str, how: Quantization, folder: Path) -> tuple[bool, bool, float, float]:
    """Words equal, round trip equal, and the largest differences: their model on our files, ours on theirs."""
    source = packable(folder / "source", name)
    made, peers = ours(source, how, folder / "ours"), theirs(source, how, folder / "theirs")
    m = wl.load(peers)
    assert m.notes == ()
    m.save(folder / "back")
    expected = peer_logits(peers)
    differences = [float(np.abs(found - expected).max()) for found in (peer_logits(made), logits(m.model))]
    return same_arrays(made, peers), contents(folder / "back") == contents(peers), differences[0], differences[1]


@pytest.mark.parametrize("form", [pytest.param(form, marks=[pytest.mark.sample]) for form in FORMATS])
@pytest.mark.parametrize("name", FAMILIES)
def test_words_logits_and_round_trip(tmp_path: Path, name: str, form: str) -> None:
    words, back, on_ours, on_theirs = row(name, FORMATS[form], tmp_path)
    assert words
    assert back
    assert on_ours == 0
    assert on_theirs <= 1e-3


@pytest.mark.sample
@pytest.mark.parametrize("recipe", MIXED)
def test_mixed_recipes_choose_as_mlx_lm_does(tmp_path: Path, recipe: str) -> None:
    from mlx_lm.convert import mixed_quant_predicate_builder
    from mlx_lm.utils import load_model

    source = packable(tmp_path / "source", "llama", num_hidden_layers=9)
    predicate = mixed_quant_predicate_builder(recipe, load_model(source)[0])
    low = int(recipe.split("_")[1])
    peers = theirs(source, Quantization(low, 64), tmp_path / "theirs", predicate)
    convert(source, Order(tmp_path / "ours", quantizing=Quantizing(find_recipe(recipe))), Wish())
    assert same_arrays(tmp_path / "ours", peers)
    assert (peer_logits(tmp_path / "ours") == peer_logits(peers)).all()
    own, other = (config_in(folder)["quantization"] for folder in (tmp_path / "ours", peers))
    # mlx-lm names every module; here those that have what most have are not named.
    usual = {key: own[key] for key in ("group_size", "bits", "mode")}
    assert own | {path: usual for path in other if "." in path and path not in own} == other | {
        "lm_head": own["lm_head"]
    }


@pytest.mark.sample
@pytest.mark.parametrize("name", FAMILIES)
def test_unpacked_it_is_a_plain_model_to_mlx_lm(tmp_path: Path, name: str) -> None:
    source = packable(tmp_path / "source", name)
    peers = theirs(source, Quantization(4, 64), tmp_path / "theirs")
    convert(peers, Order(tmp_path / "dense", quantizing=DEQUANTIZE), Wish())
    assert all(array.dtype == mx.float32 for array in arrays_in(tmp_path / "dense").values())
    np.testing.assert_allclose(peer_logits(tmp_path / "dense"), peer_logits(peers), rtol=1e-4, atol=1e-4)


@pytest.mark.sample
@pytest.mark.parametrize("layout", ["hf", "mlx"])
def test_what_was_quantized_on_load_and_saved_loads_there(tmp_path: Path, layout: str) -> None:
    m = wl.load(packable(tmp_path / "source"), quantize="mxfp8")
    m.save(tmp_path / "out", layout=layout)
    np.testing.assert_allclose(peer_logits(tmp_path / "out"), logits(m.model), rtol=1e-4, atol=1e-4)


def main() -> None:
    print(f"{'family':10} {'format':9} words  back   mlx-lm on ours   ours on mlx-lm's")
    for name in FAMILIES:
        for form, how in FORMATS.items():
            with TemporaryDirectory() as folder:
                words, back, one, other = row(name, how, Path(folder))
            print(f"{name:10} {form:9} {words!s:6} {back!s:6} {one:<16.2g} {other:.2g}")


if __name__ == "__main__":
    sys.exit(main())
