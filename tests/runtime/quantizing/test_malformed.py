"""Each way in which a packed module can be broken is refused by its name, whatever the format; sound ones come back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weightloom as wl
from tests.cases.fixtures import Arrays, contents, write
from tests.runtime.quantizing.models import arrays_in, logits, packable
from tests.runtime.support import Cli
from weightloom.engine.errors import WeightloomError
from weightloom.rules.recipe_file import find_recipe
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.quantizing.wish import Quantizing

FORMATS = ["2bit", "3bit", "4bit", "5bit", "6bit", "8bit", "mxfp4", "mxfp8", "nvfp4"]
NAMES = ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)]
MODULES = {"llama": "model.layers.1.mlp.up_proj", "qwen3_moe": "model.layers.2.mlp.switch_mlp.down_proj"}


Packed = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """Give a model that is quantized by a recipe, in the form of mlx-lm; each is made once."""
    root, made = tmp_path_factory.mktemp("packed"), set[Path]()

    def found(name: str, recipe: str) -> Path:
        folder = root / f"{name}-{recipe}"
        if folder not in made:
            order = Order(folder, quantizing=Quantizing(find_recipe(recipe)))
            convert(packable(root / f"plain-{folder.name}", name), order, Wish())
            made.add(folder)
        return folder

    return found


def broken(source: Path, target: Path, change: Callable[[Arrays], None]) -> Path:
    arrays = {name: np.array(array) for name, array in arrays_in(source).items()}
    change(arrays)
    target.mkdir()
    write(target / "model.safetensors", arrays, {"format": "mlx"})
    shutil.copy(source / "config.json", target)
    return target


@pytest.mark.parametrize("recipe", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_sound_ones_load_and_come_back_byte_for_byte(packed: Packed, tmp_path: Path, name: str, recipe: str) -> None:
    source = packed(name, recipe)
    m = wl.load(source)
    assert m.notes == ()
    m.save(tmp_path / "back")
    assert contents(tmp_path / "back") == contents(source)
    convert(source, Order(tmp_path / "shards", max_shard_bytes=20000), Wish())
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    np.testing.assert_array_equal(logits(wl.load(tmp_path / "shards").model), logits(m.model))


@pytest.mark.parametrize("recipe", ["4bit", "mxfp4", "mxfp8", "nvfp4"])
@pytest.mark.parametrize("name", NAMES)
def test_a_module_without_scales_is_refused(packed: Packed, tmp_path: Path, name: str, recipe: str) -> None:
    def change(arrays: Arrays) -> None:
        del arrays[f"{MODULES[name]}.scales"]

    source = broken(packed(name, recipe), tmp_path / "broken", change)
    with pytest.raises(WeightloomError, match=_in_any_form(MODULES[name])):
        wl.load(source)
    _refused_by_conversions(source, tmp_path)


def _refused_by_conversions(source: Path, folder: Path) -> None:
    for layout in ("hf", "canonical"):
        with pytest.raises(WeightloomError):
            convert(source, Order(folder / layout, layout), Wish())
        assert not (folder / layout).exists()


def _in_any_form(module: str) -> str:
    """The canonical stack of experts has another name than mlx-lm's."""
    return module.replace("switch_mlp", "(switch_mlp|experts)").replace(".", r"\.")


@pytest.mark.parametrize("recipe", ["4bit", "mxfp4", "mxfp8", "nvfp4"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["shape", "rows", "dtype", "no groups", "no number"])
def test_scales_that_do_not_belong_are_refused(
    packed: Packed, tmp_path: Path, name: str, recipe: str, fault: str
) -> None:
    scales = f"{MODULES[name]}.scales"

    def change(arrays: Arrays) -> None:
        old = arrays[scales]
        if fault == "shape":
            arrays[scales] = np.repeat(old, 3, axis=-1)
        elif fault == "rows":
            arrays[scales] = old[..., :-1, :]
        elif fault == "dtype":
            arrays[scales] = old.astype(np.int32)
        elif fault == "no groups":
            arrays[scales] = old[..., :0]
        else:
            arrays[scales] = old.copy()
            arrays[scales].flat[5] = np.nan if old.dtype == np.float32 else 127 if recipe == "nvfp4" else 255

    source = broken(packed(name, recipe), tmp_path / "broken", change)
    with pytest.raises(WeightloomError, match=_in_any_form(MODULES[name])):
        wl.load(source)
    _refused_by_conversions(source, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_biases_that_do_not_belong_are_refused(cli: Cli, packed: Packed, tmp_path: Path, name: str) -> None:
    biases = f"{MODULES[name]}.biases"

    def infinite(arrays: Arrays) -> None:
        arrays[biases] = np.full_like(arrays[biases], np.inf)

    source = broken(packed(name, "4bit"), tmp_path / "broken", infinite)
    with pytest.raises(WeightloomError, match="not a finite number"):
        wl.load(source)
    lazy = wl.load(source, lazy=True)
    with pytest.raises(WeightloomError, match="not a finite number"):
        logits(lazy.model)
    assert cli("convert", source, tmp_path / "dense", "--dequantize").code == 1
    assert not (tmp_path / "dense").exists()
