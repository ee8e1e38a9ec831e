"""Cases C41 to C46: codes of vendors' formats, read with their stated values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.plugins.formats.codes import Array, Labelled, labelled, write
from weightloom.engine import Checkpoint, Concatenate, MergeModulelist, Plan, Rule, RuleSet, WeightConverter
from weightloom.engine.errors import ConfigError, PlanError
from weightloom.engine.planning.composing.unpacking import plan_unpacked
from weightloom.plugins.discovery.format_manager import FormatManager
from weightloom.plugins.quantization import Stored

FP8 = {"quant_method": "fp8", "weight_block_size": [4, 4]}
C41 = {
    "a.weight": Labelled("F8_E4M3", np.full((5, 4), 0x38, np.uint8)),
    "a.weight_scale_inv": labelled(np.array([[2.0], [10.0]], np.float32)),
}


@contextmanager
def planned(
    files: Sequence[Mapping[str, Labelled]], section: Mapping[str, Any], folder: Path, rules: Sequence[Rule] = ()
) -> Iterator[Plan]:
    """Plan a checkpoint of several files, in this order, behind its format."""
    paths = [folder / f"{number}.safetensors" for number in range(len(files))]
    for path, tensors in zip(paths, files, strict=True):
        write(path, tensors)
    with Checkpoint.from_files(paths) as checkpoint:
        stored = Stored(section, checkpoint.logical)
        found = FormatManager().find(stored)
        assert found is not None
        made = found[0].unpack(stored, False)
        packed = [module.packed for module in made.modules]
        yield plan_unpacked(checkpoint, packed, RuleSet((*made.rules, *rules)))


def loaded(plan: Plan) -> dict[str, Array]:
    plan.check()
    return {name: np.array(array.astype(mx.float32)) for name, array in plan.load(threads=1).items()}


@pytest.mark.case("C41")
def test_the_config_says_how_large_blocks_are(tmp_path: Path) -> None:
    with planned([C41], FP8, tmp_path) as plan:
        np.testing.assert_array_equal(loaded(plan)["a.weight"][:, 0], [2.0, 2.0, 2.0, 2.0, 10.0])


@pytest.mark.case("C42")
@pytest.mark.parametrize("scale_first", [False, True])
def test_a_scale_may_lie_in_another_shard(tmp_path: Path, scale_first: bool) -> None:
    files = [{name: tensor} for name, tensor in sorted(C41.items(), reverse=scale_first)]
    with planned(files, FP8, tmp_path) as plan:
        params = plan.load(threads=1)
        np.testing.assert_array_equal(np.array(params["a.weight"].astype(mx.float32))[:, 3], [2, 2, 2, 2, 10])
        plan.save(params, tmp_path / "back")
    for number in range(2):
        name = f"{number}.safetensors"
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.case("C43")
def test_codes_without_their_scale_are_no_numbers(tmp_path: Path) -> None:
    lone = {"a.weight": C41["a.weight"]}
    with (
        pytest.raises(PlanError, match=r"a\.weight holds codes, F8_E4M3 \[5, 4\], and there is no a\.weight_scale_inv"),
        planned([lone], FP8, tmp_path),
    ):
        pass


@pytest.mark.case("C43")
def test_codes_of_a_module_that_is_said_to_be_dense(tmp_path: Path) -> None:
    section = {**FP8, "modules_to_not_convert": ["a"]}
    with pytest.raises(ConfigError, match=r"a\.weight is stored as codes"), planned([C41], section, tmp_path):
        pass


def nvfp4(name: str, whole: float) -> dict[str, Labelled]:
    return {
        f"{name}.weight": labelled(np.full((1, 16), 0x21, np.uint8)),
        f"{name}.weight_scale": Labelled("F8_E4M3", np.full((1, 2), 0x40, np.uint8)),
        f"{name}.weight_scale_2": labelled(np.array(whole, np.float32)),
    }


MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


@pytest.mark.case("C44")
def test_the_second_scale_of_nvfp4_counts(tmp_path: Path) -> None:
    with planned([nvfp4("q_proj", 0.5)], MODELOPT, tmp_path) as plan:
        params = plan.load(threads=1)
    weight, scales, whole = (params[f"q_proj.{part}"] for part in ("weight", "scales", "global_scale"))
    values = mx.dequantize(weight, scales, mode="nvfp4", dtype=mx.float32) * whole
    np.testing.assert_array_equal(np.array(values), [[0.5, 1.0] * 16])
    by_mlx = mx.dequantize(weight, scales, mode="nvfp4", global_scale=mx.array(0.5 * 2688), dtype=mx.float32)
    np.testing.assert_array_equal(np.array(by_mlx), np.array(values))


@pytest.mark.case("C45")
def test_parts_with_different_second_scales_keep_their_own(tmp_path: Path) -> None:
    """Chosen: kept apart, row by row, which is exact for any two scales."""
    rule = WeightConverter([r"q_proj\.weight", r"k_proj\.weight"], "qk_proj.weight", [Concatenate(0)])
    files = [nvfp4("q_proj", 0.5), nvfp4("k_proj", 0.25)]
    with planned(files, MODELOPT, tmp_path, [rule]) as plan:
        params = plan.load(threads=1)
        assert set(params) == {"qk_proj.weight", "qk_proj.scales", "qk_proj.global_scale"}
        plan.save(params, tmp_path / "back")
    values = mx.dequantize(params["qk_proj.weight"], params["qk_proj.scales"], mode="nvfp4", dtype=mx.float32)
    values = values * params["qk_proj.global_scale"]
    np.testing.assert_array_equal(np.array(values), [[0.5, 1.0] * 16, [0.25, 0.5] * 16])
    assert (tmp_path / "back" / "1.safetensors").read_bytes() == (tmp_path / "1.safetensors").read_bytes()


EXPERTS = "model.layers.0.mlp.experts"
STACK = WeightConverter(r"experts\.*.w1\.weight", "experts.w1", [MergeModulelist(0)])


def mxfp4(number: int) -> dict[str, Labelled]:
    return {
        f"{EXPERTS}.{number}.w1.weight": labelled(np.full((4, 16), 0x21, np.uint8)),
        f"{EXPERTS}.{number}.w1.scale": labelled(np.full((4, 1), 128, np.uint8)),
    }


@pytest.mark.case("C46")
def test_every_expert_has_its_scale(tmp_path: Path) -> None:
    with planned([{**mxfp4(0), **mxfp4(1)}], {}, tmp_path, [STACK]) as plan:
        params = plan.load(threads=1)
    values = mx.dequantize(params[f"{EXPERTS}.w1"], params[f"{EXPERTS}.w1_scales"], mode="mxfp4", dtype=mx.float32)
    np.testing.assert_array_equal(np.array(values), np.full((2, 4, 32), [1.0, 2.0] * 16))


@pytest.mark.case("C46")
def test_an_expert_without_a_scale_is_an_error(tmp_path: Path) -> None:
    tensors = {**mxfp4(0), **mxfp4(1)}
    del tensors[f"{EXPERTS}.0.w1.scale"]
    with pytest.raises(PlanError, match=r"experts\.0\.w1\.weight holds codes"), planned([tensors], {}, tmp_path):
        pass
