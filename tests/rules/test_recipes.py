"""Recipes: those that ship are valid and do what their names say; what is wrong with a file is told with its place."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from weightloom.engine.errors import RuleError, UsageError
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.recipe import Recipe
from weightloom.rules.problems import RuleFileError
from weightloom.rules.recipe_file import SHIPPED, find_recipe, read_recipe, recipe_names

SCHEMA: dict[str, Any] = json.loads(files("weightloom.rules").joinpath("recipe_schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
LAYERS = 16
SHAPES = {
    "model.embed_tokens": (64, 128),
    "lm_head": (64, 128),
    **{f"model.layers.{n}.self_attn.{part}_proj": (128, 128) for n in range(LAYERS) for part in "qkvo"},
    **{f"model.layers.{n}.mlp.experts.down_proj": (4, 128, 128) for n in range(LAYERS)},
    **{f"model.layers.{n}.mlp.gate": (4, 128) for n in range(LAYERS)},
}
# The first and the last eighth, and of those between every third.
MORE = {0, 1, 14, 15, 4, 7, 10, 13}


def said(tmp_path: Path, text: str) -> list[str]:
    """What is wrong with a recipe: line, column and text of each problem."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    try:
        read_recipe(file)
    except RuleFileError as error:
        return [f"{each.mark.line}:{each.mark.column} {each.seen}" for each in error.problems]
    return []


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_is_valid_and_has_its_files_name(name: str) -> None:
    errors = list(VALIDATOR.iter_errors(yaml.safe_load((SHIPPED / f"{name}.yaml").read_bytes())))
    assert not errors
    recipe = find_recipe(name)
    assert recipe.name == name
    chosen = recipe.chosen(SHAPES, {})
    assert set(chosen.dense) == {path for path in SHAPES if path.endswith(".gate")}
    assert not (chosen.odd or chosen.idle)


@pytest.mark.parametrize(("low", "high"), [(2, 6), (3, 4), (3, 6), (4, 6)])
def test_mixed_recipes_give_more_bits_to_some(low: int, high: int) -> None:
    chosen = find_recipe(f"mixed_{low}_{high}").chosen(SHAPES, {}).modules
    more = {path for path, how in chosen.items() if how == Quantization(high, 64)}
    layers = {f"model.layers.{n}.{part}" for n in MORE for part in ("self_attn.v_proj", "mlp.experts.down_proj")}
    assert more == layers | {"lm_head"}
    assert {how for path, how in chosen.items() if path not in more} == {Quantization(low, 64)}


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "schema: 1\nrecipe: mine\nabout: 'x'\nmodules:\n"
        "- {pattern: 'lm_head', keep: dense, why: 'y'}\n"
        "- {pattern: ['**.q_proj', '**.k_proj'], when: 'num_heads == 4 and layer < 2', bits: 8, group_size: 32}\n"
        "- {pattern: '**.q_proj', mode: nvfp4}\n"
        "- {pattern: '**.nothing', bits: 4}\n"
        "- {pattern: '**.*_proj', bits: 2, group_size: 128, mode: affine}\n"
        "tensors:\n- {pattern: '**.bias', dtype: keep}\n- {pattern: '**', dtype: f16, why: 'z'}\n"
    )
    recipe = read_recipe(file)
    chosen = recipe.chosen(SHAPES, {"num_heads": 4})
    assert "lm_head" in chosen.dense
    assert chosen.modules["model.layers.1.self_attn.k_proj"] == Quantization(8, 32)
    assert chosen.modules["model.layers.2.self_attn.q_proj"] == Quantization(4, 16, "nvfp4")
    assert chosen.modules["model.layers.2.self_attn.k_proj"] == Quantization(2, 128)
    assert "model.embed_tokens" in chosen.dense
    assert [str(rule.place) for rule in chosen.idle] == [f"{file}:8:3"]
    assert recipe.dtypes(["a.bias", "a.weight"]) == {"a.bias": None, "a.weight": "F16"}
    assert Recipe("none").dtypes(["a.weight"]) == {}


HEAD = "schema: 1\nrecipe: mine\nmodules:\n"
WRONG = [
    ("recipe: a\nmodules: [{pattern: '**', bits: 4}]\n", "1:1 the file lacks 'schema'"),
    ("schema: 2\nrecipe: a\nmodules: [{pattern: '**', bits: 4}]\n", "1:9 schema is 2"),
    ("schema: 1\nrecipe: 'a b'\nmodules: [{pattern: '**', bits: 4}]\n", "2:9 recipe is 'a b'"),
    ("schema: 1\nrecipe: a\n", "1:1 the recipe has no rules"),
    ("schema: 1\nrecipe: a\nmodules: []\n", "3:10 modules is a list"),
    ("schema: 1\nrecipe: a\nmodule: []\n", "3:1 the file has an unknown key 'module'"),
    (HEAD + "- '**'\n", "4:3 a rule of modules is '**'"),
    (HEAD + "- {bits: 4}\n", "4:3 a rule of modules lacks 'pattern'"),
    (HEAD + "- {pattern: '**'}\n", "4:3 a rule with neither"),
    (HEAD + "- {pattern: '**', keep: dense, bits: 4}\n", "4:3 a rule with bits, keep"),
    (HEAD + "- {pattern: '**', keep: plain}\n", "4:25 keep is 'plain'"),
    (HEAD + "- {pattern: '**', bits: 7}\n", "4:3 7 bits in groups of 64 (affine) is no quantization that MLX has"),
    (HEAD + "- {pattern: '**', bits: four}\n", "4:25 bits is 'four'"),
    (HEAD + "- {pattern: '**', bits: true}\n", "4:25 bits is True"),
    (HEAD + "- {pattern: '**', bits: 8, mode: mxfp4}\n", "4:3 8 bits in groups of 32 (mxfp4) is no quantization"),
    (HEAD + "- {pattern: '**', mode: fp4}\n", "4:25 mode is 'fp4'"),
    (HEAD + "- {pattern: 'a?b', bits: 4}\n", "4:13 the pattern 'a?b'"),
    (HEAD + "- {pattern: '**', bits: 4, when: 'layer ='}\n", "4:34 cannot read the expression 'layer ='"),
    (HEAD + "- {pattern: '**', bits: 4, optional: 1}\n", "4:38 optional is 1"),
    ("schema: 1\nrecipe: a\ntensors:\n- {pattern: '**', dtype: int8}\n", "4:26 dtype is 'int8'"),
    ("schema: 1\nrecipe: a\ntensors:\n- {pattern: '**'}\n", "4:3 a rule of tensors lacks 'dtype'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    found = said(tmp_path, text)
    assert [each for each in found if each.startswith(message)], found


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    assert len(said(tmp_path, HEAD + "- {pattern: '**', bits: 7}\n- {pattern: 1, bits: 4}\n- {bits: x}\n")) >= 4


@pytest.mark.parametrize("text", ["", HEAD + "- {pattern: '**', bits: '4'}\n", HEAD + "- {pattern: '**', mode: fp4}\n"])
def test_one_mistake_is_one_problem(tmp_path: Path, text: str) -> None:
    assert len(said(tmp_path, text)) == 1


@pytest.mark.parametrize("when", ["layer < 1", "missing > 2", "1 // (1 - 1)"])
def test_a_condition_that_cannot_be_worked_out_is_told_with_its_place(tmp_path: Path, when: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + f"- {{pattern: '**', bits: 4, when: '{when}'}}\n")
    with pytest.raises(RuleError, match=r"cannot be worked out.* for lm_head") as caught:
        read_recipe(file).chosen({"lm_head": (64, 64)}, {})
    assert caught.value.file == f"{file}:4:3"


def test_rules_that_find_no_parameter_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "schema: 1\nrecipe: mine\ntensors:\n- {pattern: '**.a', dtype: f32}\n- {pattern: '**.b', dtype: f32}\n"
        "- {pattern: '**.c', dtype: keep, optional: true}\n- {pattern: 'x.*', dtype: f16}\n"
    )
    assert list(read_recipe(file).idle_tensors(["x.a"])) == [
        f"no parameter for the rule **.b ({file}:5:3)",
        f"no parameter for the rule x.* ({file}:7:3)",
    ]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no recipe 'mixed_3_5'") as caught:
        find_recipe("mixed_3_5")
    assert caught.value.hint is not None
    assert "mixed_3_" in caught.value.hint
