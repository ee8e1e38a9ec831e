"""Experts whose matrix axes are published the other way round: shapes decide, and the config where they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from weightloom.engine import Checkpoint, Plan, TensorSpec, build_plan, save_plan
from weightloom.rules import load_rules

NAME = "model.language_model.layers.0.mlp.experts.gate_up_proj"
TURNED, STRAIGHT = (4, 32, 48), (4, 48, 32)
SQUARE = (4, 48, 48)


def config(version: str | None, hidden: int = 32) -> dict[str, Any]:
    named = {} if version is None else {"transformers_version": version}
    return {"text_config": {"hidden_size": hidden, "moe_intermediate_size": 24}} | named


def plan(in_file: tuple[int, ...], wanted: tuple[int, ...], settings: dict[str, Any]) -> Plan:
    ckpt = Checkpoint.from_specs({NAME: TensorSpec("BF16", in_file)})
    return build_plan(ckpt, load_rules("qwen3_vl_moe"), {NAME: TensorSpec(None, wanted)}, config=settings)


def is_turned(found: Plan) -> bool:
    assert found.ok()
    assert found.invertible
    (group,) = found.groups
    return group.rule is not None and len(group.program.moves) > 0


@pytest.mark.parametrize(
    ("in_file", "version", "turned"),
    [
        (TURNED, "4.57.0.dev0", True),
        (TURNED, "5.24.0", True),
        (TURNED, None, True),
        (STRAIGHT, "5.24.0", False),
        (STRAIGHT, None, False),
    ],
)
def test_the_shape_tells(in_file: tuple[int, ...], version: str | None, turned: bool) -> None:
    assert is_turned(plan(in_file, STRAIGHT, config(version))) == turned


@pytest.mark.parametrize(("version", "turned"), [("4.57.1", True), ("5.0.0", False), ("10.0.0", False)])
def test_the_config_tells_of_square_ones(version: str, turned: bool) -> None:
    assert is_turned(plan(SQUARE, SQUARE, config(version, hidden=48))) == turned


def test_square_ones_of_an_unknown_origin_are_refused() -> None:
    found = plan(SQUARE, SQUARE, config(None, hidden=48))
    assert not found.ok()
    assert "does not say whether it is transposed" in str(found.report)


@pytest.mark.parametrize(("version", "written"), [("4.57.1", TURNED), ("5.24.0", STRAIGHT)])
def test_a_fresh_model_is_written_as_the_config_s_version_has_it(version: str, written: tuple[int, ...]) -> None:
    found = save_plan(load_rules("qwen3_vl_moe"), {NAME: TensorSpec("BF16", STRAIGHT)}, config(version))
    assert found.sources[NAME].shape == written
