"""Stacks that are published (expert, in, out): turned where they are floats, and where no layout has rows first."""

import pytest

from weightloom.engine import Checkpoint, RuleSet, TensorSpec, build_plan, save_plan
from weightloom.plugins.layouts.rows_first import BLOCKS, TURNED, rows_first
from weightloom.rules import load_rules

PLACE = "model.layers.0.mlp.experts"


@pytest.mark.parametrize(("dtype", "shape"), [("BF16", (3, 16, 8)), ("U32", (3, 8, 16))])
def test_floats_are_turned_and_words_are_not(dtype: str, shape: tuple[int, ...]) -> None:
    names = [f"{PLACE}.gate_up_proj", f"{PLACE}.down_proj"]
    held = {name: TensorSpec(dtype, (3, 8, 16)) for name in names}
    rules = rows_first(RuleSet(), {})
    plan = build_plan(Checkpoint.from_specs(held), rules)
    plan.check()
    assert plan.params == {name: TensorSpec(dtype, shape) for name in names}
    assert save_plan(rules, plan.params).sources == held


def test_a_layout_with_rows_first_is_not_turned() -> None:
    held = {f"{PLACE}.{name}_proj.weight": TensorSpec("F32", (3, 8, 8)) for name in ("gate", "up", "down")}
    held[f"{PLACE}.down_proj.weight"] = TensorSpec("F32", (3, 8, 16))
    rules = rows_first(load_rules("gpt_oss", "mlx"), {})
    config = {"tie_word_embeddings": False}
    plan = build_plan(Checkpoint.from_specs(held), rules, config=config)
    plan.check()
    assert plan.params == {
        f"{PLACE}.gate_up_proj": TensorSpec("F32", (3, 16, 8)),
        f"{PLACE}.down_proj": TensorSpec("F32", (3, 8, 16)),
    }
    assert save_plan(rules, plan.params, config).sources == held


def test_words_are_published_as_blocks() -> None:
    words = {
        f"{PLACE}.down_proj": TensorSpec("U32", (3, 8, 8)),
        f"{PLACE}.down_proj_scales": TensorSpec("U8", (3, 8, 2)),
    }
    plan = save_plan(rows_first(RuleSet(), {}, (TURNED.replace(always=False), BLOCKS)), words)
    assert plan.sources == {
        f"{PLACE}.down_proj_blocks": TensorSpec("U8", (3, 8, 2, 16)),
        f"{PLACE}.down_proj_scales": TensorSpec("U8", (3, 8, 2)),
    }
