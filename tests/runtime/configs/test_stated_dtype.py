"""The dtype that a config states: a name of one, under one of two names or both, at the top and in sub-configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError
from weightloom.runtime import load
from weightloom.runtime.configs.config import Config, parse
from weightloom.runtime.configs.dtype_field import with_dtype_field
from weightloom.runtime.configs.stated_dtype import check_dtypes


def checked(content: dict[str, Any]) -> None:
    raw = json.dumps(content).encode()
    check_dtypes(Config(Path("config.json"), raw, parse(raw, Path("config.json"))))


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"dtype": None, "torch_dtype": None},
        {"torch_dtype": "auto", "dtype": "float16"},
        {"torch_dtype": "torch.bfloat16", "dtype": "bf16"},
        {"torch_dtype": "half", "dtype": "float16"},
        {"dtype": "float8_e4m3fn"},
        {"dtype": "bfloat16", "text_config": {"dtype": "float32"}, "vision_config": None},
        {"quantization_config": {"dtype": 5}},
    ],
)
def test_names_of_types_are_taken(content: dict[str, Any]) -> None:
    checked(content)


@pytest.mark.parametrize(
    ("content", "field", "said"),
    [
        ({"torch_dtype": 16}, "torch_dtype", "torch_dtype is 16"),
        ({"dtype": ["float16"]}, "dtype", "dtype is ['float16']"),
        ({"dtype": {"text_config": "float16"}}, "dtype", "dtype is {'text_config': 'float16'}"),
        ({"dtype": True}, "dtype", "dtype is True"),
        ({"dtype": ""}, "dtype", "dtype is ''"),
        ({"torch_dtype": "bflaot16"}, "torch_dtype", "did you mean 'bfloat16'?"),
        ({"text_config": {"inner_config": {"dtype": "fp33"}}}, "text_config.inner_config.dtype", "is 'fp33'"),
        ({"dtype": "float16", "torch_dtype": "bfloat16"}, "dtype", "dtype is 'float16' and torch_dtype is 'bfloat16'"),
        ({"text_config": {"dtype": "half", "torch_dtype": "float"}}, "text_config.dtype", "text_config.torch_dtype is"),
    ],
)
def test_others_are_named_with_field_and_value(content: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(content)
    assert caught.value.field == field and said in str(caught.value)
    assert (caught.value.file, bool(caught.value.expected)) == ("config.json", True)


def test_load_and_plan_check_it(cli: Cli, tmp_path: Path) -> None:
    path = write_model(tmp_path / "m", "llama")
    (path / "config.json").write_text(json.dumps(config_of("llama", dtype="bfloat16")))
    with pytest.raises(ConfigError, match="torch_dtype is 'float32'"):
        load(path)
    ran = cli("plan", path, "--json")
    assert ran.code == 1 and json.loads(ran.out)["error"]["field"] == "dtype"


@pytest.mark.parametrize("name", ["bf16", "half", "torch.float32", "Float16"])
def test_a_cast_changes_every_way_to_spell_a_float_type(name: str) -> None:
    changed = with_dtype_field(json.dumps({"dtype": name, "a_config": {"torch_dtype": name}}).encode(), "F32")
    assert json.loads(changed) == {"dtype": "float32", "a_config": {"torch_dtype": "float32"}}


def test_sub_configs_may_be_deep() -> None:
    deep = '{"x_config": ' * 400 + '{"dtype": "half"}' + "}" * 400
    checked(json.loads(deep))
    assert '"dtype": "float32"' in with_dtype_field(deep.encode(), "F32").decode()
