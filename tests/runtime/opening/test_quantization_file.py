"""ModelOpt's own file beside a config: read where the config says nothing, held against it where it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weightloom as wl
from tests.plugins.formats.vendors import VENDORS, Made, make, rewrite
from tests.runtime.support import Cli
from weightloom.engine.errors import CheckpointError, ConfigError

NAME = "hf_quant_config.json"


def beside(folder: Path, kind: str, *, stated: bool = False, **said: Any) -> Made:
    made = make(folder, "llama", VENDORS[kind])
    if not stated:
        rewrite(made, made.tensors, {key: value for key, value in made.config.items() if key != "quantization_config"})
    quantization = {"quant_algo": "FP8", "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"], **said}
    content = {"producer": {"name": "modelopt", "version": "0.33"}, "quantization": quantization}
    (made.path / NAME).write_text(json.dumps(content))
    return made


@pytest.mark.parametrize(("kind", "algorithm"), [("modelopt fp8", "FP8"), ("modelopt nvfp4", "NVFP4")])
def test_it_says_how_weights_are_packed_and_goes_with_them(tmp_path: Path, kind: str, algorithm: str, cli: Cli) -> None:
    made = beside(tmp_path, kind, quant_algo=algorithm, group_size=16)
    m = wl.load(made.path)
    assert any("quantized as modelopt" in note for note in m.notes)
    m.save(tmp_path / "back")
    assert cli("convert", made.path, tmp_path / "again").code == 0
    for name in (NAME, "config.json", "model.safetensors"):
        assert {(tmp_path / folder / name).read_bytes() for folder in ("back", "again")} == {
            (made.path / name).read_bytes()
        }
    wl.load(tmp_path / "back")


def test_floats_go_without_it(tmp_path: Path, cli: Cli) -> None:
    made = beside(tmp_path, "modelopt fp8")
    assert cli("convert", made.path, tmp_path / "floats", "--dequantize").code == 0
    assert not (tmp_path / "floats" / NAME).exists()
    wl.load(tmp_path / "floats")


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ({"quant_algo": "NVFP4"}, "quant_algo is 'NVFP4', and quantization_config.quant_algo of the config is 'FP8'"),
        ({"exclude_modules": ["lm_head", "x"]}, r"exclude_modules is .*, and quantization_config.ignore of the config"),
    ],
)
def test_a_disagreement_is_named(tmp_path: Path, said: dict[str, Any], seen: str) -> None:
    made = beside(tmp_path, "modelopt fp8", stated=True, **said)
    section = {**made.config["quantization_config"], "ignore": ["lm_head"]}
    rewrite(made, made.tensors, {**made.config, "quantization_config": section})
    with pytest.raises(ConfigError, match=seen) as caught:
        wl.load(made.path)
    assert caught.value.file == str(made.path / NAME)


def test_what_it_says_is_checked(tmp_path: Path) -> None:
    made = beside(tmp_path, "modelopt fp8", exclude_modules=["*q_proj"])
    with pytest.raises(ConfigError, match="exclude_modules lists") as caught:
        wl.load(made.path)
    assert caught.value.file == str(made.path / NAME)
    (made.path / NAME).write_text("[]")
    with pytest.raises(CheckpointError, match="not an object"):
        wl.load(made.path)
