"""Committed references: what the reference implementation loads from a tiny checkpoint, we load too, bit for bit.

Needs neither torch nor the reference implementation: the checkpoint is written anew, and its sha256 compared first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.golden.make import INDEX, sha256, write_checkpoint
from tests.golden.reference import Reference, Tensor, read_reference, reference_paths, reference_text
from weightloom.engine import Checkpoint, ModuleNode, Plan, TensorSpec, build_plan, scoped_rules
from weightloom.rules import registry

if TYPE_CHECKING:
    import mlx.core as mx

each_reference = pytest.mark.parametrize("path", reference_paths(), ids=lambda path: path.stem)


def plan_for(reference: Reference, directory: Path, params: Mapping[str, TensorSpec] | None) -> Plan:
    nodes = [ModuleNode(node.path, node.class_name, node.model_type) for node in reference.nodes]
    rules = scoped_rules(nodes, registry, reference.base_model_prefix)
    plan = build_plan(Checkpoint.open(directory), rules, params, config=reference.config)
    plan.check()
    return plan


def wanted(reference: Reference) -> dict[str, TensorSpec]:
    return {name: TensorSpec(tensor.dtype, tensor.shape) for name, tensor in reference.params.items()}


def data_of(array: mx.array) -> bytes:
    import mlx.core as mx

    return np.asarray(array.reshape(-1).view(mx.uint8)).tobytes()


def described(arrays: Mapping[str, mx.array]) -> dict[str, Tensor]:
    """What was loaded, in safetensors' terms."""
    import mlx.core as mx

    labels = {mx.float32: "F32", mx.bfloat16: "BF16", mx.int64: "I64"}
    return {
        name: Tensor(labels[array.dtype], tuple(array.shape), sha256(data_of(array))) for name, array in arrays.items()
    }


@each_reference
def test_the_checkpoint_is_written_as_it_was(path: Path, tmp_path: Path) -> None:
    reference = read_reference(path)
    files = {file: held.tensors for file, held in reference.files.items()}
    assert write_checkpoint(files, tmp_path) == (reference.files, reference.index_sha256)
    assert {file: sha256((tmp_path / file).read_bytes()) for file in files} == {
        file: held.sha256 for file, held in reference.files.items()
    }


@each_reference
def test_parameters_have_the_committed_shapes_dtypes_and_bytes(path: Path, tmp_path: Path) -> None:
    reference = read_reference(path)
    write_checkpoint({file: held.tensors for file, held in reference.files.items()}, tmp_path)
    plan = plan_for(reference, tmp_path, wanted(reference))
    assert described(plan.load()) == reference.params


@each_reference
def test_the_files_come_back_with_the_same_sha256(path: Path, tmp_path: Path) -> None:
    reference = read_reference(path)
    write_checkpoint({file: held.tensors for file, held in reference.files.items()}, tmp_path / "read")
    plan = plan_for(reference, tmp_path / "read", wanted(reference))
    plan.save(plan.load(), tmp_path / "written")
    expected = {file: held.sha256 for file, held in reference.files.items()}
    if reference.index_sha256 is not None:
        expected[INDEX] = reference.index_sha256
    assert {file.name: sha256(file.read_bytes()) for file in (tmp_path / "written").iterdir()} == expected


@each_reference
def test_every_tensor_of_the_files_has_a_place(path: Path, tmp_path: Path) -> None:
    reference = read_reference(path)
    write_checkpoint({file: held.tensors for file, held in reference.files.items()}, tmp_path)
    plan = plan_for(reference, tmp_path, wanted(reference))
    names = {name for held in reference.files.values() for name in held.tensors}
    assert names == {*plan.by_source, *(kept.name for kept in plan.kept)}
    assert sorted(plan.params) == list(reference.params)


@each_reference
def test_a_reference_reads_and_writes_as_it_is(path: Path) -> None:
    assert reference_text(read_reference(path)) == path.read_text()
