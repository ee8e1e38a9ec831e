"""Cases C35 and C85: what a config says of modules is keyed by the files' names, and goes the way of the tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.cases.fixtures import contents, write
from tests.runtime.quantizing.models import arrays_in, config_in, logits, packable
from tests.runtime.support import Cli
from weightloom.engine import (
    Checkpoint,
    Concatenate,
    PlanError,
    RuleSet,
    TensorSpec,
    WeightConverter,
    WeightRenaming,
    build_plan,
)
from weightloom.runtime.saving.named_settings import modules_made, through, with_names

RULES = RuleSet([WeightRenaming(r"^net\.tower\.", "model.")])
UP, DOWN = "layers.0.mlp.up_proj", "layers.0.mlp.down_proj"


def foreign(folder: Path, cli: Cli, tmp_path: Path) -> Path:
    """A model in 4 bits, one layer in 8 and one dense, published under names of its own."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "schema: 1\nrecipe: mine\nmodules:\n"
        f"- {{pattern: 'model.{UP}', bits: 8, group_size: 64}}\n"
        f"- {{pattern: 'model.{DOWN}', keep: dense}}\n- {{pattern: '**', bits: 4, group_size: 64}}\n"
    )
    assert cli("convert", packable(tmp_path / "plain"), tmp_path / "q", "--quantize", recipe).code == 0
    arrays = {name: np.array(array) for name, array in arrays_in(tmp_path / "q").items()}
    own = {name.replace("model.", "net.tower."): array for name, array in arrays.items()}
    folder.mkdir()
    write(folder / "model.safetensors", own)
    settings = {"group_size": 64, "bits": 4}
    section: dict[str, Any] = {
        **settings,
        f"net.tower.{UP}": {**settings, "bits": 8},
        f"net.tower.{DOWN}": False,
        "ignore": [f"net.tower.{DOWN}", "re:.*norm"],
    }
    config = config_in(tmp_path / "plain") | {"quantization": section, "quantization_config": section}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.case("C35", "C85")
def test_c35_overrides_are_read_by_the_files_names_and_written_by_those_of_the_layout(cli: Cli, tmp_path: Path) -> None:
    """C35, C85: the layer has its 8 bits; saved as it was its key is the file's; in another layout, that one's."""
    source = foreign(tmp_path / "source", cli, tmp_path)
    m = wl.load(source, rules=RULES)
    assert m.notes == ()
    assert dict(m.model.named_modules())[f"model.{UP}"].bits == 8
    np.testing.assert_array_equal(logits(m.model), logits(wl.load(tmp_path / "q").model))
    m.save(tmp_path / "same")
    assert contents(tmp_path / "same") == contents(source)
    m.save(tmp_path / "mlx", layout="mlx")
    for name in ("quantization", "quantization_config"):
        assert config_in(tmp_path / "mlx")[name] == {
            **{"group_size": 64, "bits": 4},
            f"model.{UP}": {"group_size": 64, "bits": 8},
            f"model.{DOWN}": False,
            "ignore": [f"model.{DOWN}", "re:.*norm"],
        }
    assert wl.load(tmp_path / "mlx").notes == ()


@pytest.mark.case("C35", "C85")
def test_c85_a_conversion_takes_the_names_along_and_back(cli: Cli, tmp_path: Path) -> None:
    source = foreign(tmp_path / "source", cli, tmp_path)
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "schema: 1\nfamily: mine\nlayouts:\n  hf:\n    rules:\n"
        r"      - rename: {from: '^net\.tower\.', to: 'model.'}" + "\n        why: 'names'\n"
    )
    ran = cli("convert", source, tmp_path / "mlx", "--layout", "mlx", "--rules", rules)
    assert ran.code == 0, ran
    section = config_in(tmp_path / "mlx")["quantization"]
    assert section[f"model.{UP}"] == {"group_size": 64, "bits": 8}
    assert section["ignore"] == [f"model.{DOWN}", "re:.*norm"]
    assert not [key for key in section if key.startswith("net.")]
    assert wl.load(tmp_path / "mlx").notes == ()
    np.testing.assert_array_equal(logits(wl.load(tmp_path / "mlx").model), logits(wl.load(tmp_path / "q").model))


def test_settings_of_stacked_modules_go_to_the_stack_and_to_each_part(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "source", "qwen3_moe")
    assert cli("convert", source, tmp_path / "q", "--quantize", "mixed_4_6").code == 0
    stack = "model.layers.2.mlp.switch_mlp.down_proj"
    assert stack in config_in(tmp_path / "q")["quantization"]
    assert cli("convert", tmp_path / "q", tmp_path / "hf", "--layout", "hf").code == 0
    section = config_in(tmp_path / "hf")["quantization"]
    assert stack not in section
    assert any("experts" in key and "down_proj" in key for key in section)
    assert wl.load(tmp_path / "hf").notes == ()
    assert cli("convert", tmp_path / "hf", tmp_path / "again", "--layout", "mlx").code == 0
    assert config_in(tmp_path / "again")["quantization"] == config_in(tmp_path / "q")["quantization"]
    before, after = arrays_in(tmp_path / "q"), arrays_in(tmp_path / "again")
    assert all(bool(mx.array_equal(array, after[name])) for name, array in before.items())


def joined_plan() -> Any:
    rule = WeightConverter([r"^a\.", r"^b\."], r"^ab\.", [Concatenate(0)])
    specs = {name: TensorSpec("F32", (4, 4)) for name in ("a.weight", "b.weight", "c.weight")}
    return build_plan(Checkpoint.from_specs(specs), [rule])


def test_two_settings_of_what_becomes_one_are_refused() -> None:
    names = modules_made(joined_plan())
    assert names == {"a": ("ab",), "b": ("ab",), "c": ("c",)}
    alike = json.dumps({"quantization": {"bits": 4, "a": {"bits": 8}, "b": {"bits": 8}}}).encode()
    assert json.loads(with_names(alike, names)) == {"quantization": {"bits": 4, "ab": {"bits": 8}}}
    apart = json.dumps({"quantization": {"bits": 4, "a": {"bits": 8}, "b": False}}).encode()
    with pytest.raises(PlanError, match="two things of what becomes ab"):
        with_names(apart, names)


def test_read_backwards_a_plan_leads_from_one_to_its_parts() -> None:
    assert through({"x": ("ab",), "y": ("c",)}, joined_plan()) == {"x": ("a", "b"), "y": ("c",)}


def test_a_config_without_such_settings_stays_byte_for_byte() -> None:
    raw = b'{"quantization":  {"bits": 4, "group_size": 64}, "a":   {"b": false}}'
    assert with_names(raw, {"a": ("x",), "b": ("y",)}) == raw
