"""m.save to the mlx layout and from it: what convert writes, and the published files again."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest

from tests.cases.fixtures import contents
from tests.runtime.models import runnable
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime import load, save
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

DECODERS = ["llama", "qwen3_moe"]
KEPT = "weightloom-kept.safetensors"
TOKENS = [[1, 2, 3, 4]]


@pytest.mark.parametrize("name", DECODERS)
def test_a_model_is_written_as_convert_writes_its_files(tmp_path: Path, name: str) -> None:
    source = runnable(tmp_path / "hf", name)
    load(source).save(tmp_path / "saved", layout="mlx")
    convert(source, Order(tmp_path / "converted", "mlx"), Wish())
    saved, converted = contents(tmp_path / "saved"), contents(tmp_path / "converted")
    weights = [mx.load(str(tmp_path / each / "model.safetensors")) for each in ("saved", "converted")]
    assert weights[0].keys() == weights[1].keys()
    assert all(mx.array_equal(weights[0][name], weights[1][name]).item() for name in weights[0])
    assert saved.pop("model.safetensors") and converted.pop("model.safetensors")
    assert saved == converted


@pytest.mark.parametrize("name", DECODERS)
def test_its_mlx_form_runs_and_gives_the_published_files_back(tmp_path: Path, name: str) -> None:
    source = runnable(tmp_path / "hf", name)
    load(source).save(tmp_path / "mlx", layout="mlx")
    m = load(tmp_path / "mlx")
    assert m.layout == "mlx"
    tokens = mx.array(TOKENS)
    assert mx.array_equal(m.model(tokens), load(source).model(tokens)).item()
    m.save(tmp_path / "back", layout="hf")
    assert contents(tmp_path / "back") == contents(source)
    m.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "mlx")
    m.save(tmp_path / "once more", layout="mlx")
    assert contents(tmp_path / "once more") == contents(tmp_path / "mlx")


def test_a_changed_parameter_is_what_the_published_file_has(tmp_path: Path) -> None:
    source = runnable(tmp_path / "hf", "mixtral")
    load(source).save(tmp_path / "mlx", layout="mlx")
    m = load(tmp_path / "mlx")
    name = "model.layers.0.self_attn.q_proj.weight"
    changed = mx.zeros(parameters(m.model)[name].shape)
    m.model.load_weights([(name, changed)], strict=False)
    m.save(tmp_path / "back", layout="hf")
    before, after = (mx.load(str(folder / "model.safetensors")) for folder in (source, tmp_path / "back"))
    assert before.keys() == after.keys()
    assert [n for n in before if not mx.array_equal(before[n], after[n]).item()] == [name]


def test_another_dtype_keeps_nothing(tmp_path: Path) -> None:
    source = runnable(tmp_path / "hf")
    load(source).save(tmp_path / "mlx", layout="mlx")
    load(tmp_path / "mlx", dtype="bfloat16").save(tmp_path / "b", layout="mlx")
    assert not (tmp_path / "b" / KEPT).exists()
    load(source, dtype="bfloat16").save(tmp_path / "c", layout="mlx")
    assert not (tmp_path / "c" / KEPT).exists()
    assert load(tmp_path / "c").layout == "mlx"


def test_save_is_the_same_as_a_function(tmp_path: Path) -> None:
    source = runnable(tmp_path / "hf")
    assert save(load(source), tmp_path / "mlx", layout="mlx")
    assert (tmp_path / "mlx" / KEPT).exists()
