"""m.save: as it was read, or in a named layout; the config in the form that was read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, write
from tests.runtime.models import config_of, runnable, write_model
from weightloom.engine.errors import NotInvertible, UsageError
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime import load, save

V4 = {"rope_theta": 500000.0, "rope_scaling": None}
V5 = {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}


def equal(first: Any, second: Any) -> bool:
    a, b = parameters(first.model), parameters(second.model)
    same = all(a[k].dtype == b[k].dtype and mx.array_equal(a[k], b[k]).item() for k in a.keys() & b.keys())
    return a.keys() == b.keys() and same


def test_original_is_the_same_files(tmp_path: Path) -> None:
    source = runnable(tmp_path / "a")
    load(source).save(tmp_path / "b")
    files = {path.name for path in source.iterdir()}
    assert {path.name for path in (tmp_path / "b").iterdir()} == files
    for each in files:
        assert (tmp_path / "b" / each).read_bytes() == (source / each).read_bytes()


def test_a_named_layout_gives_the_parameters_back(tmp_path: Path) -> None:
    m = load(runnable(tmp_path / "a", "qwen3_moe"))
    written = m.save(tmp_path / "b", layout="hf")
    assert written and equal(m, load(tmp_path / "b"))
    stored = mx.load(str(tmp_path / "b" / "model.safetensors"))
    assert stored.keys() == mx.load(str(tmp_path / "a" / "model.safetensors")).keys()


@pytest.mark.case("C24")
@pytest.mark.parametrize("form", [V4, V5], ids=["v4", "v5"])
def test_the_config_keeps_the_form_that_was_read(tmp_path: Path, form: dict[str, Any]) -> None:
    """C24: 500000.0 is read from either form, and the form is what is written."""
    m = load(write_model(tmp_path / "a", "llama", config_of("llama", **form)))
    plain = load(write_model(tmp_path / "plain", "llama"))
    tokens = mx.array([[1, 2, 3, 4]])
    assert not mx.allclose(m.model(tokens), plain.model(tokens)).item()
    for layout in ("original", "hf"):
        m.save(tmp_path / layout, layout=layout)
        assert (tmp_path / layout / "config.json").read_bytes() == (tmp_path / "a" / "config.json").read_bytes()


def test_both_forms_are_the_same_model(tmp_path: Path) -> None:
    old, new = (load(write_model(tmp_path / k, "llama", config_of("llama", **f))) for k, f in (("a", V4), ("b", V5)))
    tokens = mx.array([[1, 2, 3, 4]])
    assert mx.array_equal(old.model(tokens), new.model(tokens)).item()


def test_a_filled_directory_needs_overwrite(tmp_path: Path) -> None:
    m = load(write_model(tmp_path / "a", "llama"))
    m.save(tmp_path / "b")
    with pytest.raises(UsageError, match="overwrite"):
        m.save(tmp_path / "b")
    (tmp_path / "b" / "mine.txt").write_text("mine")
    save(m, tmp_path / "b", overwrite=True)
    assert (tmp_path / "b" / "mine.txt").read_text() == "mine"


def test_a_model_of_one_named_file_saves_over_it_again_and_again(tmp_path: Path) -> None:
    source = runnable(tmp_path / "a", "llama") / "model.safetensors"
    m, before = load(source), source.read_bytes()
    for _ in range(3):
        m.save(tmp_path / "a", overwrite=True)
    assert source.read_bytes() == before


def test_another_dtype_is_written_with_its_name_and_never_as_the_original(tmp_path: Path) -> None:
    m = load(write_model(tmp_path / "a", "llama"), dtype="float16")
    with pytest.raises(NotInvertible, match="F32 to F16"):
        m.save(tmp_path / "b")
    assert not (tmp_path / "b").exists()
    m.save(tmp_path / "b", layout="hf")
    assert json.loads((tmp_path / "b" / "config.json").read_text()) == config_of("llama", torch_dtype="float16")
    assert equal(m, load(tmp_path / "b"))


def test_an_unknown_layout_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load(write_model(tmp_path / "a", "llama")).save(tmp_path / "b", layout="onnx")
    assert "'onnx'" in str(raised.value) and "original" in str(raised.value) and "hf" in str(raised.value)


def test_gguf_is_not_a_layout_to_write(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gguf"):
        load(write_model(tmp_path / "a", "llama")).save(tmp_path / "b", layout="gguf")


def test_what_was_changed_is_what_is_written(tmp_path: Path) -> None:
    m = load(write_model(tmp_path / "a", "llama"))
    m.model.model.norm.weight = m.model.model.norm.weight + 1
    m.save(tmp_path / "b")
    changed, stored = load(tmp_path / "b"), mx.load(str(tmp_path / "a" / "model.safetensors"))
    assert mx.array_equal(changed.model.model.norm.weight, stored["model.norm.weight"] + 1).item()
    assert mx.array_equal(changed.model.lm_head.weight, stored["lm_head.weight"]).item()


def test_a_lenient_load_keeps_what_nothing_wanted(tmp_path: Path) -> None:
    source = write_model(tmp_path / "a", "llama")
    stored = {k: np.array(v) for k, v in mx.load(str(source / "model.safetensors")).items()}
    write(source / "model.safetensors", {**filled({"encoder_extra.w": (2,)}), **stored})
    load(source, strict=False).save(tmp_path / "b")
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
