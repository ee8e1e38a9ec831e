"""Cases C15, C16, C20, C81, C82: what the config and the model's shapes decide, and the message where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases.fixtures import (
    Arrays,
    assert_same,
    contents,
    filled,
    iota,
    plan_of,
    specs,
    t0,
    t0_shapes,
    write,
)
from weightloom.engine import ConversionOp, Drop, IndexMap, PlanError, Rule, WeightConverter, WeightRenaming
from weightloom.engine.ops.chain import Chain

MTP = ("eh_proj", "enorm", "hnorm")


def mtp_rules(config: Mapping[str, Any]) -> list[Rule]:
    """Layers from `num_hidden_layers` on are the MTP block, which is left out unless the model has it."""
    depth = config["num_hidden_layers"]
    return [
        IndexMap(rf"^model\.layers\.{{i+{depth}}}\.", "mtp.layers.{i}."),
        Drop(r"^mtp\.", when="num_nextn_predict_layers", why="MTP block, not used for generation"),
    ]


def layer_file(depth: int) -> Arrays:
    shapes: dict[str, tuple[int, ...]] = {f"model.layers.{i}.w": (2,) for i in range(depth)}
    return filled({**shapes, **{f"model.layers.{depth}.{part}.weight": (2,) for part in MTP}})


@pytest.mark.case("C15")
@pytest.mark.parametrize("depth", [2, 62])
def test_c15_the_extra_layer_is_told_by_the_models_depth(tmp_path: Path, depth: int) -> None:
    """C15: index >= num_hidden_layers is dropped and said so, or kept; layer 61 of 62 is an ordinary one."""
    config = {"num_hidden_layers": depth, "num_nextn_predict_layers": 1}
    file = layer_file(depth)
    write(tmp_path / "in" / "model.safetensors", file)
    ordinary = {name: array for name, array in file.items() if name.endswith(".w")}
    plan = plan_of(tmp_path / "in", mtp_rules(config), specs(ordinary), config)
    loaded = plan.load()
    assert_same(loaded, ordinary)
    assert {(record.name, record.why) for record in plan.report.dropped} == {
        (f"model.layers.{depth}.{part}.weight", "MTP block, not used for generation") for part in MTP
    }
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")
    kept = {**ordinary, **{f"mtp.layers.0.{part}.weight": file[f"model.layers.{depth}.{part}.weight"] for part in MTP}}
    asked = plan_of(tmp_path / "in", mtp_rules(config), specs(kept), config)
    assert_same(asked.load(), kept)
    assert not asked.report.dropped


@dataclass(frozen=True, slots=True)
class ChannelsLast(ConversionOp):
    """A convolution (O, I, H, W) to (O, H, W, I), unless it has the model's shape; `stored` decides between equals."""

    stored: str | None = None

    def lower(self, chain: Chain) -> None:
        """One permutation, or none."""
        shape = chain.parts[0].specs[0].shape
        wanted = chain.context.targets[0].spec
        turned = (shape[0], *shape[2:], shape[1])
        fits_as_is = wanted is None or wanted.shape == shape
        fits_turned = wanted is None or wanted.shape == turned
        if fits_as_is and fits_turned and self.stored is None:
            raise PlanError(f"{list(shape)} may be channels-first or channels-last", expected="metadata")
        if fits_turned and (self.stored == "first" or not fits_as_is):
            chain.permute(0, 0, (0, 2, 3, 1))
        chain.relabel([chain.context.targets[0].label])


CONV_RULES: list[Rule] = [
    WeightConverter("conv.weight", "conv.weight", [ChannelsLast(stored)], when=when)
    for stored, when in (
        ("last", "metadata.format == 'mlx'"),
        ("first", "metadata.format == 'pt'"),
        (None, "metadata.format not in ['mlx', 'pt']"),
    )
]


@pytest.mark.case("C16")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("label", [None, "pt", "mlx"])
def test_c16_a_convolution_is_never_turned_twice(tmp_path: Path, label: str | None, turned: bool) -> None:
    """C16: whatever the metadata says, `[4,3,2,2]` and `[4,2,2,3]` load as `[4,2,2,3]`, and save as they were."""
    torch = iota(4, 3, 2, 2)
    mine = torch.transpose(0, 2, 3, 1)
    metadata = None if label is None else {"format": label}
    write(tmp_path / "in" / "model.safetensors", {"conv.weight": mine if turned else torch}, metadata)
    plan = plan_of(tmp_path / "in", CONV_RULES, specs({"conv.weight": mine}))
    loaded = plan.load()
    assert_same(loaded, {"conv.weight": mine})
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C16")
def test_c16_where_the_shape_says_nothing_the_metadata_decides(tmp_path: Path) -> None:
    """C16: `[3,3,3,3]`. Chosen: without metadata it is refused, with it the layout is known."""
    square = iota(3, 3, 3, 3)
    for label, wanted in (("pt", square.transpose(0, 2, 3, 1)), ("mlx", square)):
        write(tmp_path / label / "model.safetensors", {"conv.weight": square}, {"format": label})
        assert_same(
            plan_of(tmp_path / label, CONV_RULES, specs({"conv.weight": square})).load(), {"conv.weight": wanted}
        )
    write(tmp_path / "none" / "model.safetensors", {"conv.weight": square})
    with pytest.raises(PlanError, match="channels-first or channels-last"):
        plan_of(tmp_path / "none", CONV_RULES, specs({"conv.weight": square})).load()


SHARED = [f"model.layers.1.self_attn.{part}_proj.weight" for part in "kv"]


@pytest.mark.case("C20")
def test_c20_a_drop_rule_takes_shared_keys_and_says_why(tmp_path: Path) -> None:
    """C20: with a rule that may drop them, the K/V of a sharing layer are left out, counted and explained."""
    file = t0()
    write(tmp_path / "in" / "model.safetensors", file)
    params = {name: array for name, array in file.items() if name not in SHARED}
    rule = Drop(
        r"layers\.\d+\.self_attn\.[kv]_proj\.weight",
        when="num_kv_shared_layers",
        why="the layer uses the keys and values of an earlier one",
    )
    config = {"num_hidden_layers": 2, "num_kv_shared_layers": 1}
    plan = plan_of(tmp_path / "in", [rule], specs(params), config)
    loaded = plan.load()
    assert_same(loaded, params)
    assert [record.name for record in plan.report.dropped] == SHARED
    assert "dropped: 2" in str(plan.report) and "of an earlier one" in str(plan.report)
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C20")
def test_c20_without_the_rule_the_error_groups_them_and_explains(tmp_path: Path) -> None:
    """C20: the error says layer 1: k_proj, v_proj, and that layers may share these tensors."""
    file = t0()
    write(tmp_path / "model.safetensors", file)
    params = {name: array for name, array in file.items() if name not in SHARED}
    with pytest.raises(PlanError) as caught:
        plan_of(tmp_path, [], specs(params), {"num_kv_shared_layers": 1}).load()
    assert "model.layers.1: self_attn.k_proj.weight, self_attn.v_proj.weight" in (caught.value.hint or "")
    assert "share" in (caught.value.hint or "") and "`drop`" in (caught.value.hint or "")


@pytest.mark.case("C81")
def test_c81_one_wrong_prefix_is_named_in_a_short_message(tmp_path: Path) -> None:
    """C81: 200 layers under `net.`: grouped, the likely rule named, at most ten examples; following it loads."""
    file = filled(t0_shapes(200, prefix="net."))
    write(tmp_path / "model.safetensors", file)
    params = specs(t0_shapes(200))
    plan = plan_of(tmp_path, [], params)
    with pytest.raises(PlanError) as caught:
        plan.load()
    text = str(caught.value)
    assert "net.layers.*.input_layernorm.weight x200" in text
    assert "net.layers.*.self_attn.q_proj.weight x200" in text
    assert "prefix net. -> model. would match 1803 of 1803" in text
    assert sum("x200" in line for line in text.splitlines()) <= 10
    assert len(text.splitlines()) <= 18
    assert len(plan.report.unexpected) == len(plan.report.missing) == 1802
    assert len(plan.to_json()["report"]["unexpected"]) == 1802
    assert len(plan_of(tmp_path, [WeightRenaming(r"^net\.", "model.")], params).load()) == 1803


@pytest.mark.case("C82")
def test_c82_a_file_with_more_layers_than_the_model(tmp_path: Path) -> None:
    """C82: strict, the 9 tensors of layer 1 are one group in the error; lenient, layer 0 loads, the 9 are reported."""
    file = t0(2)
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", [], specs(t0_shapes(1)), {"num_hidden_layers": 1})
    with pytest.raises(PlanError) as caught:
        plan.load()
    lines = [line for line in str(caught.value).splitlines() if "layers.1." in line]
    assert len(lines) == 1 and "model.layers.1.* x9" in lines[0]
    assert "fewer layers" in (caught.value.hint or "")
    loaded = plan.load(strict=False)
    assert_same(loaded, {name: array for name, array in file.items() if ".layers.1." not in name})
    assert len(plan.report.unexpected) == 9
    assert all(name.startswith("model.layers.1.") for name in plan.report.unexpected)
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")
