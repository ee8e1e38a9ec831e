"""Loading, saving back and saving anew, against the reference implementation's own loading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.oracle import peer
from tests.oracle.cases import each_case, each_file
from tests.oracle.conftest import Saved
from tests.oracle.models import model_of
from weightloom.engine import Checkpoint, Plan, TensorSpec, build_plan, save_plan

if TYPE_CHECKING:
    import mlx.core as mx
    import torch

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def plan_for(name: str, dtype: str, directory: Path) -> Plan:
    model = model_of(name, dtype)
    config = peer.config_of(directory)
    plan = build_plan(Checkpoint.open(directory), peer.rules_of(model), peer.param_specs(model), config=config)
    plan.check()
    return plan


def bytes_of(array: mx.array) -> bytes:
    import mlx.core as mx

    return np.asarray(array.reshape(-1).view(mx.uint8)).tobytes()


def assert_same(ours: Mapping[str, mx.array], plan: Plan, theirs: Mapping[str, torch.Tensor]) -> None:
    """Bit for bit, in the dtype of the file; where the reference widens a tensor, that is undone first."""
    assert sorted(ours) == sorted(theirs)
    different = [name for name in theirs if bytes_of(ours[name]) != in_dtype(theirs[name], plan.params[name])]
    assert different == []


def in_dtype(tensor: torch.Tensor, spec: TensorSpec) -> bytes:
    import torch

    dtypes = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64}
    return peer.bytes_of(tensor.to(dtypes[spec.dtype or ""]))


def weights_in(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.safetensors*")}


def copy_config(source: Path, target: Path) -> None:
    (target / "config.json").write_bytes((source / "config.json").read_bytes())


@each_file
def test_parameters_are_bit_equal_to_the_reference(name: str, dtype: str, sharded: bool, saved: Saved) -> None:
    directory = saved(name, dtype, sharded)
    plan = plan_for(name, dtype, directory)
    model, info = peer.load(name, directory)
    assert peer.misfits(info) == {}
    assert_same(plan.load(), plan, model.state_dict())


@each_file
def test_the_original_layout_is_written_back_byte_for_byte(
    name: str, dtype: str, sharded: bool, saved: Saved, tmp_path: Path
) -> None:
    directory = saved(name, dtype, sharded)
    plan = plan_for(name, dtype, directory)
    assert len(weights_in(directory)) > 1 if sharded else len(weights_in(directory)) == 1
    plan.save(plan.load(), tmp_path / "again")
    assert weights_in(tmp_path / "again") == weights_in(directory)


@each_case
def test_new_shards_load_in_the_reference(name: str, saved: Saved, tmp_path: Path) -> None:
    directory = saved(name, "bfloat16", False)
    plan = plan_for(name, "bfloat16", directory)
    plan.save(plan.load(), tmp_path / "cut", max_shard_bytes=9_000)
    copy_config(directory, tmp_path / "cut")
    model, info = peer.load(name, tmp_path / "cut")
    assert peer.misfits(info) == {}
    assert_same_state(model.state_dict(), peer.load(name, directory)[0].state_dict())


@each_case
def test_a_fresh_model_is_written_so_that_the_reference_loads_it(name: str, saved: Saved, tmp_path: Path) -> None:
    directory = saved(name, "bfloat16", False)
    params = fresh_arrays(model_of(name, "bfloat16").state_dict())
    specs = {name: TensorSpec(spec.dtype, spec.shape) for name, (spec, _) in params.items()}
    model = model_of(name, "bfloat16")
    plan = save_plan(peer.rules_of(model), specs, peer.config_of(directory))
    plan.save({name: array for name, (_, array) in params.items()}, tmp_path / "fresh")
    copy_config(directory, tmp_path / "fresh")
    loaded, info = peer.load(name, tmp_path / "fresh")
    assert peer.misfits(info) == {}
    assert_same_state(loaded.state_dict(), model.state_dict())


def fresh_arrays(state: Mapping[str, torch.Tensor]) -> dict[str, tuple[Any, mx.array]]:
    import mlx.core as mx

    types = {"F32": mx.float32, "BF16": mx.bfloat16, "I64": mx.int64}
    found: dict[str, tuple[Any, mx.array]] = {}
    for name, tensor in state.items():
        spec = peer.spec_of(tensor)
        flat = mx.array(np.frombuffer(peer.bytes_of(tensor), np.uint8))
        found[name] = spec, flat.view(types[spec.dtype]).reshape(spec.shape)
    return found


def assert_same_state(mine: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> None:
    assert sorted(mine) == sorted(theirs)
    assert [name for name in mine if peer.spec_of(mine[name]) != peer.spec_of(theirs[name])] == []
    assert [name for name in mine if peer.bytes_of(mine[name]) != peer.bytes_of(theirs[name])] == []
