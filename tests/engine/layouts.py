"""A checkpoint of NumPy arrays through rules and back, for tests of published layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.laws.sources import in_memory, of_array
from tests.laws.worlds import Tensor, bytes_of
from weightloom.engine import Checkpoint, Plan, Rule, TensorSpec, build_plan, save_plan

Array = np.ndarray[Any, Any]
LABELS = {"uint8": "U8", "uint16": "BF16", "uint32": "F32", "float32": "F32"}


def counted(*shape: int, start: int = 0) -> Array:
    """Different 16-bit patterns, which a checkpoint holds as BF16."""
    return np.asarray(np.arange(start, start + int(np.prod(shape)), dtype=np.uint16).reshape(shape))


def tensor_of(array: Array) -> Tensor:
    return of_array(array, LABELS[array.dtype.name])


@contextmanager
def opened(arrays: Mapping[str, Array | Tensor], folder: Path) -> Iterator[Checkpoint]:
    """One file, in the order of the mapping."""
    source = folder / "source"
    source.mkdir()
    tensors = {name: each if isinstance(each, Tensor) else tensor_of(each) for name, each in arrays.items()}
    with in_memory(tensors, source) as checkpoint:
        yield checkpoint


def check(
    arrays: Mapping[str, Array],
    rules: Sequence[Rule],
    expected: Mapping[str, Array],
    folder: Path,
    config: Mapping[str, Any] | None = None,
    *,
    closed: bool = True,
) -> Plan:
    """Load gives what is expected; a save gives the source's bytes; a fresh save gives its names and shapes."""
    specs = {name: tensor_of(array).spec for name, array in expected.items()}
    with opened(arrays, folder) as checkpoint:
        plan = build_plan(checkpoint, rules, specs if closed else None, config=config)
        plan.check()
        assert plan.invertible
        assert plan.inverse().inverse() == plan
        params = plan.load(threads=1)
        assert {name: bytes_of(params[name]) for name in params} == {n: a.tobytes() for n, a in expected.items()}
        plan.save(params, folder / "target")
        assert same_file(folder)
    fresh = save_plan(rules, specs, config)
    wanted = {name: tensor_of(array).spec for name, array in arrays.items()}
    assert {name: spec.logical() for name, spec in fresh.sources.items()} == wanted
    return fresh


def same_file(folder: Path) -> bool:
    name = "model.safetensors"
    return (folder / "source" / name).read_bytes() == (folder / "target" / name).read_bytes()


def plan_specs(specs: Mapping[str, TensorSpec], rules: Sequence[Rule], **options: Any) -> Plan:
    """A plan on names and shapes alone."""
    return build_plan(Checkpoint.from_specs(specs), rules, **options)
