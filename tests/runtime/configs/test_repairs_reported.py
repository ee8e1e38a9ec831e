"""Every repair of a config is in the report, in whichever way one asks, also those inside a nested text model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.test_adapter_load import adapter, pair
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.llama import Fields
from weightloom.plugins.configs.repair import repaired_numbers
from weightloom.runtime import inspect, load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

SCALED = {"type": "linear", "factor": "2"}
ODD: dict[str, Any] = {
    "hidden_size": "32",
    "tie_word_embeddings": None,
    "rope_scaling": SCALED,
    "rms_norm_eps": None,
    "rope_theta": "1e4",
}
FIELDS = (
    "rope_theta is '1e4'; read as the number 10000.0",
    "hidden_size is '32'; read as the number 32",
    "rms_norm_eps is null where a number is wanted; read as if it were absent",
    "tie_word_embeddings is null where true or false is wanted; read as if it were absent",
    "rope_scaling.factor is '2'; read as the number 2.0",
)
TEXT = "config.json: a byte-order mark is left out"


def odd(folder: Path, config: dict[str, Any]) -> Path:
    """Write a tiny Llama whose config has a byte-order mark too."""
    write_model(folder, "llama")
    (folder / "config.json").write_text("\ufeff" + json.dumps(config))
    return folder


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    return odd(tmp_path / "flat", config_of("llama", **ODD))


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    return odd(tmp_path / "nested", {"model_type": "llava", "text_config": config_of("llama", **ODD)})


WANTED = (TEXT, *(f"config.json: {each}" for each in FIELDS))
BELOW = (TEXT, *(f"config.json: text_config.{each}" for each in FIELDS))


@pytest.mark.parametrize("options", [{}, {"dtype": "bfloat16"}, {"lazy": True}])
def test_a_load_lists_them(flat: Path, nested: Path, options: dict[str, Any]) -> None:
    for path, wanted in ((flat, WANTED), (nested, BELOW)):
        m = load(path, **options)
        assert m.report.repaired == wanted and set(wanted) <= set(m.notes)


def test_plan_and_inspect_list_them(cli: Cli, flat: Path, nested: Path) -> None:
    for path, wanted in ((flat, WANTED), (nested, BELOW)):
        assert inspect(path).repaired == wanted
        assert json.loads(cli("inspect", path, "--json").out)["repaired"] == list(wanted)
        text = cli("inspect", path).out
        assert all(f"repaired: {each}" in text for each in wanted)
    assert json.loads(cli("plan", flat, "--json").out)["report"]["repaired"] == list(WANTED)
    text = cli("plan", flat).out
    assert "repaired: 6" in text and all(each in text for each in WANTED)


@pytest.mark.parametrize("options", [("--layout", "mlx"), ("--layout", "hf"), ("--dtype", "bf16")])
def test_a_conversion_lists_them(cli: Cli, flat: Path, tmp_path: Path, options: tuple[str, str]) -> None:
    ran = cli("convert", flat, tmp_path / "out", *options, "--json")
    assert ran.code == 0 and set(WANTED) <= set(json.loads(ran.out)["notes"])


def test_where_no_architecture_says_what_fields_want_the_texts_repairs_are_listed(cli: Cli, flat: Path) -> None:
    assert json.loads(cli("plan", flat, "--open-target", "--json").out)["report"]["repaired"] == [TEXT]
    (flat / "config.json").write_text('\ufeff{"model_type": "nobodys"}')
    assert inspect(flat).repaired == (TEXT,)


def test_the_order_of_fields_does_not_matter(flat: Path) -> None:
    content = {**config_of("llama"), **ODD, "rope_parameters": {"full_attention": {"rope_theta": "7"}}}
    del content["rope_theta"], content["rope_scaling"]
    content["rope_parameters"]["another"] = {"factor": "3", "rope_theta": "4"}

    def turned(value: Any) -> Any:
        return {k: turned(value[k]) for k in reversed(list(value))} if isinstance(value, dict) else value

    reports = []
    for each in (content, turned(content)):
        (flat / "config.json").write_text(json.dumps(each))
        reports.append((load(flat).report.to_json(), inspect(flat).to_json()))
    assert reports[0] == reports[1]


def test_numbers_in_lists_are_repaired_item_by_item(tmp_path: Path) -> None:
    path = write_model(tmp_path / "moe", "qwen3_moe")
    (path / "config.json").write_text(json.dumps(config_of("qwen3_moe", mlp_only_layers=["0", 1.0])))
    found = inspect(path).repaired
    assert found == (
        "config.json: mlp_only_layers[0] is '0'; read as the number 0",
        "config.json: mlp_only_layers[1] is 1.0; read as the number 1",
    )


def test_sizes_of_packing_are_repaired_of_all_and_of_single_modules() -> None:
    packing = {"group_size": "32", "bits": 4.0, "model.lm_head": {"bits": "8"}, "other": {"bits": None}}
    found = repaired_numbers(
        Fields, {"quantization": packing, "quantization_config": {"weight_block_size": ["128", 1]}}
    )
    assert found.content["quantization"] == {
        **{"group_size": 32, "bits": 4},
        **{"model.lm_head": {"bits": 8}, "other": {"bits": None}},
    }
    assert [repair.field for repair in found.repairs] == [
        "quantization.group_size",
        "quantization.bits",
        "quantization.model.lm_head.bits",
        "quantization_config.weight_block_size[0]",
    ]


def test_an_error_in_a_nested_config_names_the_field_where_it_is(nested: Path) -> None:
    text = config_of("llama", num_attention_heads="four")
    (nested / "config.json").write_text(json.dumps({"model_type": "llava", "text_config": text}))
    with pytest.raises(ConfigError, match=r"text_config\.num_attention_heads is 'four'") as caught:
        load(nested)
    assert caught.value.field == "text_config.num_attention_heads"
    assert caught.value.file == str(nested / "config.json")


def test_repairs_of_an_adapters_config_are_noted(flat: Path, tmp_path: Path) -> None:
    folder = adapter(tmp_path / "adapter", pair())
    file = folder / "adapter_config.json"
    file.write_text("\ufeff" + file.read_text())
    notes = load(flat, adapter=folder).notes
    assert f"{folder}: adapter_config.json: a byte-order mark is left out" in notes


def test_surgery_keeps_them_in_the_report(flat: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "surgery.yaml"
    recipe.write_text("version: 1\noperations:\n- op: scale\n  pattern: model.norm.weight\n  factor: 2.0\n")
    assert load(flat, surgery=recipe).report.repaired == WANTED


def test_the_mlx_form_has_numbers_for_its_readers_and_leads_back_to_the_bytes(tmp_path: Path) -> None:
    """Expressions of rule data go by the repaired numbers too."""
    path = write_model(tmp_path / "in", "mixtral")
    text = json.dumps(config_of("mixtral", hidden_size="32", num_attention_heads=4.0, rms_norm_eps=None))
    (path / "config.json").write_text(text)
    convert(path, Order(tmp_path / "mlx", layout="mlx"), Wish())
    written = json.loads((tmp_path / "mlx/config.json").read_text())
    assert (written["hidden_size"], written["num_attention_heads"]) == (32, 4) and "rms_norm_eps" not in written
    assert type(written["num_attention_heads"]) is int
    convert(tmp_path / "mlx", Order(tmp_path / "back", layout="hf"), Wish())
    assert (tmp_path / "back/config.json").read_text() == text
