"""Pruning on plans: packed weights are cut at the borders of groups, and nowhere else."""

from __future__ import annotations

from itertools import combinations

import mlx.core as mx
import numpy as np
import pytest

from weightloom.engine import Checkpoint, Plan, RuleSet, build_plan
from weightloom.engine.errors import ConfigError, PlanError
from weightloom.engine.surgery import Glob, Operation, PruneChannels, PruneHeads, PruneLayers, operate
from weightloom.engine.surgery.heads import Heads

RNG = np.random.default_rng(8)
CONFIG = {"num_attention_heads": 4, "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2}


def packed(name: str, rows: int, columns: int, group: int, bits: int) -> dict[str, mx.array]:
    dense = mx.array(RNG.standard_normal((rows, columns)).astype(np.float32))
    parts = mx.quantize(dense, group_size=group, bits=bits)
    return dict(zip((f"{name}.weight", f"{name}.scales", f"{name}.biases"), parts, strict=True))


def dense(arrays: dict[str, mx.array], name: str, group: int, bits: int) -> mx.array:
    parts = (arrays[f"{name}.{part}"] for part in ("weight", "scales", "biases"))
    return mx.dequantize(*parts, group_size=group, bits=bits)


def plan_of(arrays: dict[str, mx.array]) -> Plan:
    return build_plan(Checkpoint.from_arrays(arrays), RuleSet(()))


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_packed_heads_are_cut_where_groups_end(bits: int) -> None:
    arrays = packed("a.q_proj", 128, 64, 32, bits) | packed("a.o_proj", 64, 128, 32, bits)
    found = operate(plan_of(arrays), [PruneHeads(Glob("a.**"), (1,))], CONFIG)
    loaded = found.plan.load()
    rows = np.r_[0:32, 64:128]
    assert np.array_equal(dense(loaded, "a.q_proj", 32, bits), np.array(dense(arrays, "a.q_proj", 32, bits))[rows])
    assert np.array_equal(dense(loaded, "a.o_proj", 32, bits), np.array(dense(arrays, "a.o_proj", 32, bits))[:, rows])
    assert (found.config["num_attention_heads"], found.config["head_dim"]) == (3, 32)


def test_packed_heads_that_share_a_group_are_refused_by_name() -> None:
    arrays = packed("a.o_proj", 64, 128, 64, 4)
    with pytest.raises(PlanError, match=r"a.o_proj.weight.*groups of 2 units"):
        operate(plan_of(arrays), [PruneHeads(Glob("**"), (1,))], CONFIG)
    assert operate(plan_of(arrays), [PruneHeads(Glob("**"), (2, 3))], CONFIG).plan.params["a.o_proj.scales"].shape == (
        64,
        1,
    )


def test_packed_channels_go_by_whole_groups() -> None:
    arrays = packed("m.down_proj", 64, 128, 32, 4)
    ids = tuple(range(32, 64))
    loaded = operate(plan_of(arrays), [PruneChannels(Glob("**"), ids)], CONFIG).plan.load()
    wanted = np.array(dense(arrays, "m.down_proj", 32, 4))[:, np.r_[0:32, 64:128]]
    assert np.array_equal(dense(loaded, "m.down_proj", 32, 4), wanted)
    with pytest.raises(PlanError, match="groups of 32"):
        operate(plan_of(arrays), [PruneChannels(Glob("**"), ids[:-1])], CONFIG)


def test_scales_of_blocks_are_refused() -> None:
    arrays = {"m.up_proj.weight": mx.zeros((128, 4)), "m.up_proj.weight_scale_inv": mx.zeros((1, 1))}
    with pytest.raises(PlanError, match="weight_scale_inv"):
        operate(plan_of(arrays), [PruneChannels(Glob("**"), (0,))], CONFIG)


@pytest.mark.parametrize("operation", [PruneHeads(Glob("**"), (0,)), PruneLayers(Glob("**"), (0,))])
@pytest.mark.parametrize("value", [None, "4", 0, True])
def test_a_config_that_does_not_say_enough_is_named(operation: Operation, value: object) -> None:
    config = {**CONFIG, "num_attention_heads": value, "num_hidden_layers": value}
    with pytest.raises(ConfigError, match=r"num_(attention_heads|hidden_layers)"):
        operate(plan_of({"l.0.o_proj.weight": mx.zeros((4, 128))}), [operation], config)


@pytest.mark.parametrize("field", ["decoder_sparse_step", "full_attention_interval"])
def test_a_config_that_counts_layers_is_refused(field: str) -> None:
    arrays = {f"l.{n}.w": mx.zeros(2) for n in range(2)}
    with pytest.raises(PlanError, match=field):
        operate(plan_of(arrays), [PruneLayers(Glob("l.**"), (0,))], {**CONFIG, field: 2})


@pytest.mark.parametrize(
    ("field", "value"), [("num_kv_shared_layers", 2), ("moe_layers", [1]), ("mlp_only_layers", [0])]
)
def test_types_of_layers_do_not_speak_for_what_else_is_counted(field: str, value: object) -> None:
    arrays = {f"l.{n}.w": mx.zeros(2) for n in range(2)}
    config = {**CONFIG, "layer_types": ["one", "other"], "sliding_window_pattern": 2, field: value}
    with pytest.raises(PlanError, match=f"'{field}' of the config"):
        operate(plan_of(arrays), [PruneLayers(Glob("l.**"), (0,))], config)


def test_lists_with_an_entry_a_layer_lose_theirs() -> None:
    config = {"text_config": {"num_hidden_layers": 2, "layer_types": ["one", "other"], "eos_token_id": [1, 2]}}
    arrays = {f"l.{n}.w": mx.full((2,), n) for n in range(2)}
    found = operate(plan_of(arrays), [PruneLayers(Glob("l.**"), (0,))], config)
    assert found.config == {"text_config": {"num_hidden_layers": 1, "layer_types": ["other"], "eos_token_id": [1, 2]}}
    assert found.plan.load()["l.0.w"].tolist() == [1, 1]
    assert [each.name for each in found.plan.report.dropped] == ["l.0.w"]


def test_heads_stay_even() -> None:
    for size in range(1, 6):
        for removed in combinations(range(6), size):
            heads = Heads(6, 3, frozenset(removed))
            left = [sum(head in heads.kept for head in (2 * group, 2 * group + 1)) for group in range(3)]
            assert heads.even == (len({each for each in left if each}) == 1)
            assert len(heads.kept_groups) == sum(map(bool, left))
