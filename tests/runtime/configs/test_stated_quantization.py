"""A section of quantization that cannot be read is refused by name, not passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import config_of, write_model
from weightloom.engine.errors import ConfigError
from weightloom.runtime import load


@pytest.mark.parametrize("field", ["quantization", "quantization_config"])
@pytest.mark.parametrize("value", ["awq", "", [], 4, True])
def test_a_section_that_is_no_object_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    folder = write_model(tmp_path / "m", "llama", config_of("llama", **{field: value}))
    with pytest.raises(ConfigError, match=f"^{folder}/config.json: {field} is ") as caught:
        load(folder)
    assert caught.value.field == field


def test_a_method_that_is_no_name_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", "llama", config_of("llama", quantization_config={"quant_method": 3}))
    with pytest.raises(ConfigError, match=r"quantization_config\.quant_method is 3"):
        load(folder)


def test_a_section_of_the_text_model_is_named_by_its_place(tmp_path: Path) -> None:
    content = {"model_type": "llava", "text_config": config_of("llama", quantization="4bit")}
    folder = write_model(tmp_path / "m", "llama")
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"text_config\.quantization is '4bit'"):
        load(folder, text_only=True)


def test_a_null_for_the_method_is_as_if_it_were_absent(tmp_path: Path) -> None:
    section = {"quant_method": None, "bits": 4, "group_size": 64}
    folder = write_model(tmp_path / "m", "llama", config_of("llama", quantization_config=section))
    with pytest.raises(ConfigError, match="says 4 bits in groups of 64, and no tensor"):
        load(folder)


@pytest.mark.parametrize("section", [None, {}, {"quant_method": None}])
def test_a_section_that_says_nothing_is_none(tmp_path: Path, section: Any) -> None:
    folder = write_model(tmp_path / "m", "llama", config_of("llama", quantization_config=section))
    assert load(folder).plan.ok()
