"""What the cases on shipped rules share: a file there and back, and a model that is written fresh."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cases.fixtures import (
    Arrays,
    assert_same,
    contents,
    names_in,
    plan_of,
    specs,
    to_mlx,
    write,
)
from tests.rules.checkpoints import model_rules
from weightloom.engine import Plan, RuleSet, save_plan

QWEN2_MOE = model_rules(("", "Qwen2MoeForCausalLM", "qwen2_moe"), ("model", "Qwen2MoeModel", "qwen2_moe"))
MIXTRAL = model_rules(("", "MixtralForCausalLM", "mixtral"), ("model", "MixtralModel", "mixtral"))
EXPERTS = "model.layers.0.mlp.experts"


def there_and_back(
    folder: Path, rules: RuleSet, file: Arrays, params: Arrays, config: Mapping[str, Any] | None = None
) -> Plan:
    """A file loads into these parameters and is written back byte for byte."""
    write(folder / "in" / "model.safetensors", file)
    plan = plan_of(folder / "in", rules, specs(params), config)
    loaded = plan.load()
    assert_same(loaded, params)
    plan.save(loaded, folder / "out")
    assert contents(folder / "out") == contents(folder / "in")
    return plan


def written_fresh(rules: RuleSet, params: Arrays, folder: Path, config: Mapping[str, Any] | None = None) -> set[str]:
    save_plan(rules, specs(params), config).save(to_mlx(params), folder)
    return names_in(folder)
