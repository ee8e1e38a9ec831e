"""Adapters with anything in their config, their names and their shapes: errors of ours, or a plan that fits."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.fixtures import const, write
from weightloom.engine import RuleSet, TensorSpec
from weightloom.engine.errors import WeightloomError
from weightloom.runtime.adapting.adapter_plan import plan_on
from weightloom.runtime.adapting.adapter_source import open_adapter

PARAMS = {
    "model.mlp.experts.gate_up_proj": TensorSpec("F32", (2, 4, 4)),
    "model.mlp.experts.down_proj": TensorSpec("F32", (2, 4, 2)),
    "model.mlp.gate.weight": TensorSpec("F32", (2, 4)),
    "model.q.weight": TensorSpec("F32", (4, 4)),
    "model.q.bias": TensorSpec("F32", (4,)),
    "model.embed.weight": TensorSpec("F32", (6, 4)),
}
KINDS = ["A.weight", "B.weight", "A.default.weight", "embedding_A", "embedding_B", "magnitude_vector", "A", "E"]
MODULES = [
    "model.q",
    "model.mlp.experts",
    "model.mlp.experts.base_layer",
    "model.mlp.gate",
    "model.embed",
    "q",
    "",
    "(",
]
NAMES = st.one_of(
    st.builds(lambda m, k: f"base_model.model.{m}.lora_{k}", st.sampled_from(MODULES), st.sampled_from(KINDS)),
    st.sampled_from(["base_model.model.model.q.bias", "base_model.model.model.q.base_layer.weight", "x", ".."]),
    st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=12),
)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 4, 6]), max_size=3)
TARGETS = ["experts.gate_up_proj", "gate_up_proj", "down_proj", "mlp.gate.weight", "weight", "", "q", ".*"]
VALUES = {
    "r": st.sampled_from([1, 2, 0, 2**40, "1"]),
    "lora_alpha": st.sampled_from([1, 0, 1e308, "1", None]),
    "use_dora": st.booleans(),
    "use_rslora": st.booleans(),
    "fan_in_fan_out": st.booleans(),
    "bias": st.sampled_from(["none", "all", "lora_only", 3]),
    "peft_version": st.sampled_from(["0.18.0", "0.19.0", "9" * 5000, "-", None]),
    "target_parameters": st.lists(st.sampled_from(TARGETS), max_size=3) | st.sampled_from([None, "experts"]),
    "rank_pattern": st.dictionaries(st.sampled_from(["q", "gate_up_proj", "("]), st.sampled_from([1, 2]), max_size=2),
}


@settings(max_examples=300)
@given(
    st.dictionaries(NAMES, SHAPES, min_size=1, max_size=6), st.fixed_dictionaries({}, optional=VALUES), st.booleans()
)
def test_only_errors_of_ours_escape(shapes: dict[str, list[int]], values: dict[str, Any], strict: bool) -> None:
    config = {"peft_type": "LORA", **({"r": 1, "lora_alpha": 2} if strict else {}), **values}
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "adapter_model.safetensors", {key: const(1, *shape) for key, shape in shapes.items()})
        (folder / "adapter_config.json").write_text(json.dumps(config))
        try:
            found = plan_on(open_adapter(folder), RuleSet(), PARAMS, {})
        except WeightloomError:
            return
        changed = {each.parameter for each in found.changes} | set(found.replaced)
        assert changed <= set(PARAMS)
        assert set(found.plan.sources) == set(shapes)
        for parameter, made in found.factors(found.plan.load()):
            assert (*made.b.shape[:-1], made.a.shape[-1]) == PARAMS[parameter].shape
