"""A dense layer after the pooling: its settings and its weights, which lie in a folder of their own.

Format: the Sentence Transformers documentation, `Dense`: `linear` of `in_features` -> `out_features`, an activation by
the name of its class, with `use_residual` the input added (through `residual` where the widths differ).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import Checkpoint, RuleSet, TensorSpec, build_plan
from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.json_file import read_json_object

if TYPE_CHECKING:
    import mlx.core as mx

_WEIGHTS = "model.safetensors"
_ACTIVATIONS = ("Tanh", "Identity", "ReLU", "GELU", "SiLU", "Sigmoid")
_VECTOR = "sentence_embedding"


@dataclass(frozen=True, slots=True)
class DenseSettings:
    """What the layer's config says; `folder` is where it and the weights are."""

    folder: Path
    in_features: int
    out_features: int
    bias: bool = True
    activation: str = "Tanh"
    residual: bool = False


@dataclass(frozen=True)
class Dense:
    """The layer with its weights; those that it lacks are None."""

    settings: DenseSettings
    weight: mx.array
    bias: mx.array | None
    residual: mx.array | None

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __call__(self, vectors: mx.array) -> mx.array:
        """(N, in_features) -> (N, out_features), float32; raises ConfigError for vectors of another width."""
        if vectors.shape[-1] != self.settings.in_features:
            raise ConfigError(
                f"in_features is {self.settings.in_features}, and what comes before has {vectors.shape[-1]} dimensions",
                expected="layers that fit each other",
                file=self.settings.folder / "config.json",
                field="in_features",
            )
        made = vectors @ self.weight.T
        made = _activated(made if self.bias is None else made + self.bias, self.settings.activation)
        if not self.settings.residual:
            return made
        return made + (vectors if self.residual is None else vectors @ self.residual.T)


def read_dense(folder: Path) -> DenseSettings:
    """Read a layer's config; raises ConfigError for what is lacking, of another type, or not known."""
    path = folder / "config.json"
    content = read_json_object(path)
    sizes = [_checked(content, name, int, None, path) for name in ("in_features", "out_features")]
    flags = [_checked(content, name, bool, usual, path) for name, usual in (("bias", True), ("use_residual", False))]
    said = _checked(content, "activation_function", str, "Tanh", path)
    activation = said.rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise _wrong(path, "activation_function", said, f"one of {', '.join(_ACTIVATIONS)}")
    for name in ("module_input_name", "module_output_name"):
        if content.get(name) not in (None, _VECTOR):
            raise _wrong(path, name, content[name], _VECTOR)
    return DenseSettings(folder, sizes[0], sizes[1], flags[0], activation, flags[1])


def load_dense(settings: DenseSettings) -> Dense:
    """Read a layer's weights as float32; raises CheckpointError and PlanError where they are not as its config says."""
    import mlx.core as mx

    wanted: dict[str, tuple[int, ...]] = {"linear.weight": (settings.out_features, settings.in_features)}
    if settings.bias:
        wanted["linear.bias"] = (settings.out_features,)
    if settings.residual and settings.in_features != settings.out_features:
        wanted["residual.weight"] = wanted["linear.weight"]
    with Checkpoint.open(settings.folder / _WEIGHTS) as file:
        plan = build_plan(file, RuleSet(), {name: TensorSpec(None, shape) for name, shape in wanted.items()})
        plan.check()
        found = {name: array.astype(mx.float32) for name, array in plan.load().items()}
    return Dense(settings, found["linear.weight"], found.get("linear.bias"), found.get("residual.weight"))


def _activated(values: mx.array, name: str) -> mx.array:
    import mlx.core as mx
    import mlx.nn as nn

    known: dict[str, Callable[[mx.array], mx.array]] = {
        "Tanh": mx.tanh,
        "Identity": mx.array,
        "ReLU": nn.relu,
        "GELU": nn.gelu,
        "SiLU": nn.silu,
        "Sigmoid": mx.sigmoid,
    }
    return known[name](values)


def _checked(content: Mapping[str, Any], name: str, kind: type, usual: Any, path: Path) -> Any:
    value = content.get(name, usual)
    sound = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not sound or (kind is int and value < 1):
        raise _wrong(path, name, value, {int: "a width", bool: "true or false", str: "a class's name"}[kind])
    return value


def _wrong(path: Path, name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"{name} is {value!r}", expected=expected, file=path, field=name)
