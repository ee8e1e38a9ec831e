"""What a config says of quantized modules: most of them at once, the others by name; and what has no one answer."""

from __future__ import annotations

import json

import pytest

from weightloom.engine import Checkpoint, Chunk, Concatenate, PlanError, TensorSpec, WeightConverter, build_plan
from weightloom.engine.planning.fresh import save_plan
from weightloom.engine.quantizing.plans import packed_plan
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.runtime.quantizing.config_section import packed_modules, section_of, with_quantization

FOUR, EIGHT = Quantization(4, 64), Quantization(8, 32)


def test_what_most_modules_have_is_said_once() -> None:
    section = section_of({"a": FOUR, "b": EIGHT, "c": FOUR})
    assert section == {
        **{"group_size": 64, "bits": 4, "mode": "affine"},
        "b": {"group_size": 32, "bits": 8, "mode": "affine"},
    }
    assert section_of({}) == {}


def test_both_sections_are_written_and_old_ones_go_wherever_they_are() -> None:
    old = {"bits": 4, "group_size": 32}
    raw = json.dumps({"a": 1, "quantization_config": old, "text_config": {"quantization": old, "b": 2}}).encode()
    section = section_of({"a": FOUR})
    assert json.loads(with_quantization(raw, section)) == {
        "a": 1,
        "text_config": {"b": 2},
        "quantization": section,
        "quantization_config": section,
    }
    assert json.loads(with_quantization(raw, {})) == {"a": 1, "text_config": {"b": 2}}


def test_a_config_without_a_section_stays_byte_for_byte() -> None:
    raw = b'{"a":   1}'
    assert with_quantization(raw, {}) == raw


ROWS = TensorSpec("F32", (64, 128))


def test_modules_that_go_into_one_tensor_must_be_packed_alike() -> None:
    """A layout may join what the model has apart."""
    rules = [WeightConverter(r"^qk\.", [r"^q\.", r"^k\."], [Concatenate(0).inverse()])]
    with Checkpoint.from_specs({"q.weight": ROWS, "k.weight": ROWS}) as checkpoint:
        plan = build_plan(checkpoint, ())
        alike, apart = (packed_plan(plan, {"q.weight": FOUR, "k.weight": how}) for how in (FOUR, Quantization(2, 64)))
        assert packed_modules(alike.then(save_plan(rules, alike.params, {}).inverse())) == {"qk": FOUR}
        with pytest.raises(PlanError):
            packed_modules(apart.then(save_plan(rules, apart.params, {}).inverse()))


def test_modules_that_come_from_one_tensor_may_be_packed_each_in_its_own_way() -> None:
    rule = WeightConverter(r"^qk\.", [r"^q\.", r"^k\."], [Chunk(0)])
    with Checkpoint.from_specs({"qk.weight": TensorSpec("F32", (128, 128)), "norm.weight": ROWS}) as checkpoint:
        packed = packed_plan(build_plan(checkpoint, [rule]), {"q.weight": FOUR, "k.weight": EIGHT})
        assert packed_modules(packed) == {"q": FOUR, "k": EIGHT}
