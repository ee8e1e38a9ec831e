"""Loading, saving back and saving anew, against the reference implementation's own loading."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.oracle import peer
from tests.oracle.arrays import assert_same, assert_same_state, to_mlx
from tests.oracle.cases import each_case, each_file
from tests.oracle.conftest import Saved
from tests.oracle.models import model_of
from weightloom.engine import Plan, TensorSpec, save_plan

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def fitting_plan(name: str, dtype: str, directory: Path) -> Plan:
    plan = peer.plan_for(name, dtype, directory)
    plan.check()
    return plan


def weights_in(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.safetensors*")}


@each_file
def test_parameters_are_bit_equal_to_the_reference(name: str, dtype: str, sharded: bool, saved: Saved) -> None:
    directory = saved(name, dtype, sharded)
    plan = fitting_plan(name, dtype, directory)
    model, info = peer.load(name, directory)
    assert peer.misfits(info) == {}
    assert_same(plan.load(), plan, model.state_dict())


@each_file
def test_the_original_layout_is_written_back_byte_for_byte(
    name: str, dtype: str, sharded: bool, saved: Saved, tmp_path: Path
) -> None:
    directory = saved(name, dtype, sharded)
    plan = fitting_plan(name, dtype, directory)
    assert (len(weights_in(directory)) > 1) is sharded
    plan.save(plan.load(), tmp_path / "again")
    assert weights_in(tmp_path / "again") == weights_in(directory)


@each_case
def test_new_shards_load_in_the_reference(name: str, saved: Saved, tmp_path: Path) -> None:
    directory = saved(name, "bfloat16", False)
    plan = fitting_plan(name, "bfloat16", directory)
    plan.save(plan.load(), tmp_path / "cut", max_shard_bytes=9_000)
    shutil.copy(directory / "config.json", tmp_path / "cut")
    model, info = peer.load(name, tmp_path / "cut")
    assert peer.misfits(info) == {}
    assert_same_state(model.state_dict(), model_of(name, "bfloat16").state_dict())


@each_case
def test_a_fresh_model_is_written_so_that_the_reference_loads_it(name: str, saved: Saved, tmp_path: Path) -> None:
    directory = saved(name, "bfloat16", False)
    model = model_of(name, "bfloat16")
    params = {key: to_mlx(tensor) for key, tensor in model.state_dict().items()}
    specs = {key: TensorSpec(spec.dtype, spec.shape) for key, (spec, _) in params.items()}
    plan = save_plan(peer.rules_of(model), specs, peer.config_of(directory))
    plan.save({key: array for key, (_, array) in params.items()}, tmp_path / "fresh")
    shutil.copy(directory / "config.json", tmp_path / "fresh")
    loaded, info = peer.load(name, tmp_path / "fresh")
    assert peer.misfits(info) == {}
    assert_same_state(loaded.state_dict(), model.state_dict())
