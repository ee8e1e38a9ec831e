"""Small checkpoints under published names, and the check that they load and come back byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.layouts import counted, tensor_of
from tests.laws.disk import shard_bytes
from tests.laws.worlds import Tensor, bytes_of
from weightloom.engine import Checkpoint, ModuleNode, Plan, RuleSet, TensorSpec, build_plan, save_plan, scoped_rules
from weightloom.rules import registry

Array = np.ndarray[Any, Any]
Held = dict[str, Array | Tensor]
Config = Mapping[str, Any]
METADATA = {"format": "pt", "made by": "hand"}


def model_rules(*nodes: tuple[str, str, str | None], base: str = "model") -> RuleSet:
    """The shipped rules for a model's tree: (path, class name, model type) of each sub-model, the root first."""
    return scoped_rules([ModuleNode(*node) for node in nodes], registry, base)


@dataclass(frozen=True)
class Layout:
    """What a file holds and the parameters that it must give; every tensor has numbers of its own."""

    file: Held = field(default_factory=dict)
    params: Held = field(default_factory=dict)
    _next: count[int] = field(default_factory=lambda: count(1))

    def array(self, *shape: int) -> Array:
        """Give an array whose bits no other has."""
        return counted(*shape, start=64 * next(self._next))

    def renamed(self, names: Mapping[str, str], shape: Sequence[int] = (2, 3)) -> Layout:
        """Add tensors that have one name in the file and another in the model."""
        for published, parameter in names.items():
            self.file[published] = self.params[parameter] = self.array(*shape)
        return self

    def same(self, names: Iterable[str], shape: Sequence[int] = (2, 3)) -> Layout:
        """Add tensors that are published under the parameter's name."""
        return self.renamed({name: name for name in names}, shape)

    def only_in_file(self, names: Iterable[str], shape: Sequence[int] = (2, 3)) -> Layout:
        """Add tensors that the model has no place for."""
        self.file.update({name: self.array(*shape) for name in names})
        return self

    def added(self, file: Mapping[str, Array | Tensor], params: Mapping[str, Array | Tensor]) -> Layout:
        """Add tensors with what they become, worked out by NumPy."""
        self.file.update(file)
        self.params.update(params)
        return self

    def experts(self, published: str, parameter: str, names: tuple[str, str, str], number: int = 3) -> Layout:
        """Add experts in matrices of their own, which become two stacks; names are those of gate, up and down."""
        parts = {
            name: [self.array(*shape) for _ in range(number)]
            for name, shape in zip(names, ((2, 4), (2, 4), (4, 2)), strict=True)
        }
        file = {
            f"{published}.{i}.{name}.weight": array for name, arrays in parts.items() for i, array in enumerate(arrays)
        }
        gate, up, down = (np.stack(arrays) for arrays in parts.values())
        stacks = {f"{parameter}.gate_up_proj": np.concatenate([gate, up], 1), f"{parameter}.down_proj": down}
        return self.added(file, stacks)


def specs(held: Mapping[str, Array | Tensor]) -> dict[str, TensorSpec]:
    """Give dtypes and shapes."""
    return {name: _tensor(each).spec for name, each in held.items()}


def _tensor(each: Array | Tensor) -> Tensor:
    return each if isinstance(each, Tensor) else tensor_of(each)


def write(folder: Path, held: Mapping[str, Array | Tensor], metadata: Mapping[str, str] | None = METADATA) -> Path:
    """Write one file, in an order that is neither that of the names nor that of the data."""
    tensors = {name: _tensor(each) for name, each in held.items()}
    folder.mkdir(parents=True)
    names = list(tensors)
    data = shard_bytes(names, names[::-1], tensors, metadata, {"indent": 1}, 5)
    (folder / "model.safetensors").write_bytes(data)
    return folder


def comes_back(folder: Path, layout: Layout, rules: RuleSet, config: Config | None = None, strict: bool = True) -> Plan:
    """A file loads into its parameters, bit for bit, and is saved as the very file."""
    with Checkpoint.open(write(folder / "in", layout.file)) as checkpoint:
        plan = build_plan(checkpoint, rules, specs(layout.params), config=config)
        plan.check(strict)
        assert plan.invertible
        params = plan.load(threads=1, strict=strict)
        assert {name: bytes_of(each) for name, each in params.items()} == {
            name: _tensor(each).data for name, each in layout.params.items()
        }
        plan.save(params, folder / "out")
    assert (folder / "out/model.safetensors").read_bytes() == (folder / "in/model.safetensors").read_bytes()
    return plan


def comes_back_and_is_written(folder: Path, layout: Layout, rules: RuleSet, config: Config | None = None) -> Plan:
    """The same; and a model that was never loaded is written under the very names and shapes."""
    plan = comes_back(folder, layout, rules, config)
    fresh = save_plan(rules, specs(layout.params), config)
    written = {(name, spec.logical()) for name, spec in fresh.sources.items()}
    odd = written ^ set(specs(layout.file).items())
    assert not odd, "\n".join(f"{name} {spec}" for name, spec in sorted(odd, key=str))
    return plan
