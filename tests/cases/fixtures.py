"""The small checkpoints of the cases, written byte by byte with NumPy alone: T0, T1, TM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from weightloom.engine import Checkpoint, Concatenate, MergeModulelist, Plan, Rule, RuleSet, TensorSpec, WeightConverter
from weightloom.engine import build_plan as build_plan

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

INDEX = "model.safetensors.index.json"
_LABELS = {"float32": "F32", "uint32": "U32", "uint8": "U8", "float16": "F16", "int32": "I32"}


def iota(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def const(value: float, *shape: int) -> Array:
    return np.full(shape, value, dtype=np.float32)


def filled(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> Arrays:
    chance = np.random.default_rng(seed)
    return {name: chance.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def t0_shapes(layers: int = 2, prefix: str = "model.") -> dict[str, tuple[int, ...]]:
    block = {
        **{f"self_attn.{n}_proj": (rows, 8) for n, rows in (("q", 8), ("k", 4), ("v", 4), ("o", 8))},
        **{"mlp.gate_proj": (12, 8), "mlp.up_proj": (12, 8), "mlp.down_proj": (8, 12)},
        **{"input_layernorm": (8,), "post_attention_layernorm": (8,)},
    }
    names = {f"{prefix}embed_tokens.weight": (16, 8), f"{prefix}norm.weight": (8,), "lm_head.weight": (16, 8)}
    for layer in range(layers):
        names |= {f"{prefix}layers.{layer}.{part}.weight": shape for part, shape in block.items()}
    return names


def t0(layers: int = 2) -> Arrays:
    return filled(t0_shapes(layers))


def t1_quantized(bits: int = 4, group: int = 32) -> Arrays:
    """Embedding and head of T1 in MLX's affine packing, the head equal to the embedding."""
    chance = np.random.default_rng(1)
    packed = chance.integers(0, 2**32, (64, 64 * bits // 32), dtype=np.uint32)
    scales, biases = (chance.standard_normal((64, 64 // group), dtype=np.float32) for _ in range(2))
    parts = {"weight": packed, "scales": scales, "biases": biases}
    ends = ("model.embed_tokens", "lm_head")
    return {f"{end}.{part}": array.copy() for end in ends for part, array in parts.items()}


def tm(experts: int, seed: int = 2) -> Arrays:
    shapes = {"gate": (4, 8), "up": (4, 8), "down": (8, 4)}
    return filled(
        {
            f"model.layers.0.mlp.experts.{i}.{part}_proj.weight": shape
            for i in range(experts)
            for part, shape in shapes.items()
        },
        seed,
    )


TM_RULES = (
    WeightConverter(
        ["experts.*.gate_proj.weight", "experts.*.up_proj.weight"],
        "experts.gate_up_proj",
        [MergeModulelist(0), Concatenate(1)],
    ),
    WeightConverter("experts.*.down_proj.weight", "experts.down_proj", [MergeModulelist(0)]),
)


def tm_fused(experts: int) -> Arrays:
    """TM's parameters, worked out with NumPy."""
    source = tm(experts)
    stacks = {
        part: np.stack([source[f"model.layers.0.mlp.experts.{i}.{part}_proj.weight"] for i in range(experts)])
        for part in ("gate", "up", "down")
    }
    return {
        "model.layers.0.mlp.experts.gate_up_proj": np.concatenate([stacks["gate"], stacks["up"]], axis=1),
        "model.layers.0.mlp.experts.down_proj": stacks["down"],
    }


def write(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> Path:
    """Write a safetensors file with its tensors in the given order."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data = b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        ends = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": _LABELS[array.dtype.name], "shape": list(array.shape), "data_offsets": ends}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def write_sharded(folder: Path, shards: Sequence[Mapping[str, Array]]) -> Path:
    """Write shards and their index; gives the folder."""
    weight_map = {}
    for number, arrays in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write(folder / name, arrays)
        weight_map |= dict.fromkeys(arrays, name)
    write_index(folder, weight_map)
    return folder


def write_index(folder: Path, weight_map: Mapping[str, str]) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": dict(weight_map)}))


def halves(arrays: Mapping[str, Array]) -> list[Arrays]:
    names = list(arrays)
    cut = len(names) // 2
    return [{n: arrays[n] for n in names[:cut]}, {n: arrays[n] for n in names[cut:]}]


def specs(arrays: Mapping[str, Array] | Mapping[str, tuple[int, ...]]) -> dict[str, TensorSpec]:
    found = {}
    for name, value in arrays.items():
        shape = value if isinstance(value, tuple) else value.shape
        dtype = "F32" if isinstance(value, tuple) else _LABELS[value.dtype.name]
        found[name] = TensorSpec(dtype, shape)
    return found


def plan_of(
    path: Path,
    rules: Iterable[Rule] = (),
    params: Mapping[str, TensorSpec] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Plan:
    return build_plan(Checkpoint.open(path), RuleSet(rules), params, config=config)


def to_mlx(arrays: Mapping[str, Array]) -> dict[str, mx.array]:
    return {name: mx.array(array) for name, array in arrays.items()}


def assert_same(found: Mapping[str, mx.array], wanted: Mapping[str, Array]) -> None:
    """The same names, and for each the same shape, dtype and bits."""
    assert sorted(found) == sorted(wanted)
    for name, array in wanted.items():
        mine = np.array(found[name])
        assert (mine.shape, mine.dtype) == (array.shape, array.dtype), name
        assert mine.tobytes() == np.ascontiguousarray(array).tobytes(), name


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names_in(folder: Path) -> set[str]:
    with Checkpoint.open(folder) as checkpoint:
        return set(checkpoint.tensors)
