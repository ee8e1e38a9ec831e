"""Adapters that fit, changed in their config, their names and their shapes: errors of ours, or a plan that fits."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.cases.fixtures import const, write
from weightloom.engine import RuleSet, TensorSpec
from weightloom.engine.errors import WeightloomError
from weightloom.runtime.adapting.adapter_plan import plan_on
from weightloom.runtime.adapting.adapter_source import open_adapter

Shapes = dict[str, tuple[int, ...]]
PARAMS = {
    "model.mlp.experts.gate_up_proj": TensorSpec("F32", (2, 4, 4)),
    "model.mlp.experts.down_proj": TensorSpec("F32", (2, 4, 2)),
    "model.mlp.gate.weight": TensorSpec("F32", (2, 4)),
    "model.q.weight": TensorSpec("F32", (4, 4)),
    "model.q.bias": TensorSpec("F32", (4,)),
    "model.embed.weight": TensorSpec("F32", (6, 4)),
}
Q, STACK, INNER, EMBED = (
    f"base_model.model.model.{n}" for n in ("q", "mlp.experts", "mlp.experts.base_layer", "embed")
)
PARTS: list[Shapes] = [
    {f"{Q}.lora_A.weight": (1, 4), f"{Q}.lora_B.weight": (4, 1)},
    {f"{Q}.lora_A.default.weight": (1, 4), f"{Q}.lora_B.default.weight": (4, 1), f"{Q}.base_layer.bias": (4,)},
    {f"{EMBED}.lora_embedding_A": (1, 6), f"{EMBED}.lora_embedding_B": (4, 1)},
    {f"{STACK}.lora_A.weight": (2, 2), f"{STACK}.lora_B.weight": (4, 2)},
    {f"{INNER}.lora_A.weight": (2, 4), f"{INNER}.lora_B.weight": (4, 2)},
    {f"{Q}.lora_magnitude_vector": (4,), f"{EMBED}.lora_magnitude_vector": (4,)},
]
TARGETS = ["experts.gate_up_proj", "gate_up_proj", "down_proj", "mlp.gate.weight", "weight", "", "q", ".*"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "r": st.sampled_from([1, 1, 1, 2, 0, 2**40, "1"]),
    "lora_alpha": st.sampled_from([1, 1, 0, 1e308, "1", None]),
    "use_dora": st.booleans(),
    "use_rslora": st.booleans(),
    "fan_in_fan_out": st.booleans(),
    "bias": st.sampled_from(["none", "all", "lora_only", 3]),
    "peft_version": st.sampled_from(["0.18.0", "0.19.0", "9" * 5000, "-", None]),
    "target_parameters": st.lists(st.sampled_from(TARGETS), max_size=3) | st.sampled_from([None, "experts"]),
    "rank_pattern": st.dictionaries(st.sampled_from(["q", "gate_up_proj", "("]), st.sampled_from([1, 2]), max_size=2),
}
NAMES = st.sampled_from([Q, STACK, EMBED, "base_model.model.(", "q", "..", f"{Q}.lora_A.weight"]) | st.text(
    st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=12
)
SHAPE = st.lists(st.sampled_from([0, 1, 2, 4, 6]), max_size=3).map(tuple)
BASE = {"peft_type": "LORA", "r": 1, "lora_alpha": 2, "target_parameters": ["gate_up_proj", "down_proj"]}


@st.composite
def adapters(draw: st.DrawFn) -> tuple[Shapes, dict[str, Any]]:
    """Parts of an adapter that fits, and its config, with a few changes."""
    shapes = {
        name: shape for part in draw(st.lists(st.sampled_from(PARTS), max_size=4)) for name, shape in part.items()
    }
    config = {**BASE, "peft_version": "0.21.2", "use_dora": any("magnitude" in name for name in shapes)}
    for change in draw(st.lists(st.sampled_from(["drop", "name", "shape", "field"]), max_size=2)):
        if change == "field" or not shapes:
            field = draw(st.sampled_from(sorted(VALUES)))
            config[field] = draw(VALUES[field])
            continue
        name = draw(st.sampled_from(sorted(shapes)))
        shape = shapes.pop(name) if change != "shape" else draw(SHAPE)
        if change != "drop":
            shapes[draw(NAMES) if change == "name" else name] = shape
    return shapes, config


@settings(max_examples=100)
@given(adapters())
def test_only_errors_of_ours_escape(given: tuple[Shapes, dict[str, Any]]) -> None:
    shapes, config = given
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "adapter_model.safetensors", {key: const(1, *shape) for key, shape in shapes.items()})
        (folder / "adapter_config.json").write_text(json.dumps(config))
        try:
            found = plan_on(open_adapter(folder), RuleSet(), PARAMS, {})
        except WeightloomError as error:
            event(type(error).__name__)
            return
        event(f"{len(found.changes)} changes")
        assert {each.parameter for each in found.changes} | set(found.replaced) <= set(PARAMS)
        assert set(found.plan.sources) == set(shapes)
        for parameter, made in found.factors(found.plan.load()):
            assert (*made.b.shape[:-1], made.a.shape[-1]) == PARAMS[parameter].shape
