"""Law 6: a shard that is read is the whole, cut; and only what the shard needs is read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.sources import NotedSource, in_memory, of_array, with_sources
from tests.laws.worlds import Tensor, World, bytes_of, worlds
from tests.strategies import share
from weightloom.engine import (
    Chunk,
    Concatenate,
    MergeModulelist,
    PlanError,
    Sharding,
    Transpose,
    WeightConverter,
)
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.planning.sharding import Kind

KINDS = get_args(Kind)


def cut(array: np.ndarray[Any, Any], kind: str, rank: int, size: int) -> np.ndarray[Any, Any] | None:
    """The shard by NumPy; None where the array does not divide so."""
    if kind == "replicate" or size == 1:
        return array
    if array.ndim == 0 or (kind == "row" and array.ndim < 2):
        return None
    dim = {"column": max(array.ndim - 2, 0), "packed": max(array.ndim - 2, 0), "row": array.ndim - 1}.get(kind, 0)
    halves = 2 if kind == "packed" else 1
    if array.shape[dim] % (halves * size):
        return None
    parts = np.split(array, halves, dim) if halves > 1 else [array]
    return np.concatenate([np.split(part, size, dim)[rank] for part in parts], dim)


def elements(tensor: Tensor) -> np.ndarray[Any, Any]:
    width = DTYPES[tensor.dtype].bits // 8
    return np.frombuffer(tensor.data, np.dtype(f"u{width}") if width else np.uint8).reshape(tensor.shape)


@share(0.5)
@given(st.data())
def test_a_shard_is_the_whole_cut(data: st.DataObject) -> None:
    world = data.draw(worlds())
    size = data.draw(st.sampled_from((1, 2, 4)))
    rank = data.draw(st.integers(0, size - 1))
    kinds = {name: data.draw(st.sampled_from(KINDS)) for name in sorted(world.params)}
    expected: dict[str, bytes] = {}
    refused: set[str] = set()
    for name, tensor in world.params.items():
        if DTYPES[tensor.dtype].bits < 8:
            kinds[name] = "replicate"
            expected[name] = tensor.data
            continue
        part = cut(elements(tensor), kinds[name], rank, size)
        expected |= {} if part is None else {name: part.tobytes()}
        refused |= {name} if part is None else set()
    patterns = {f"^{_escaped(name)}$": kind for name, kind in kinds.items()}
    with TemporaryDirectory() as place, in_memory(world.tensors, Path(place)) as opened:
        checkpoint, sources = with_sources(opened, NotedSource)
        plan = world.plan(checkpoint)
        sharding = Sharding(rank, size, patterns)
        if refused:
            with pytest.raises(PlanError) as seen:
                plan.load(sharding, threads=1)
            assert seen.value.tensor in refused
            return
        found = plan.load(sharding, threads=1)
        assert {name: bytes_of(found[name]) for name in expected} == expected
        checked = any(record.copy for record in plan.report.tied)
        ends = [(sharding.kind_of(record.parameter), sharding.kind_of(record.other)) for record in plan.report.tied]
        apart = size > 1 and any(first != second for first, second in ends)
        # What a group makes is read one result at a time, each along the short gaps that the others are.
        together = max((len(group.targets) for group in plan.groups), default=1)
        check_read_once(sources, allowed=(1 + checked + apart) * together)


@share(0.1)
@given(st.data())
def test_a_shard_of_what_is_computed_is_the_whole_cut(data: st.DataObject) -> None:
    from weightloom.engine.planning.cast import with_dtype

    world = data.draw(worlds())
    rank, size = data.draw(st.sampled_from(((0, 2), (1, 2), (3, 4))))
    with TemporaryDirectory() as place, in_memory(world.tensors, Path(place)) as checkpoint:
        plan = with_dtype(world.plan(checkpoint), data.draw(st.sampled_from(("F32", "BF16"))))
        whole = {name: as_integers(array) for name, array in plan.load(threads=1).items()}
        # What MLX lacks is carried in another shape.
        plain = {name for name, tensor in world.params.items() if DTYPES[tensor.dtype].mlx is not None}
        kinds = {name: data.draw(st.sampled_from(KINDS)) if name in plain else "replicate" for name in sorted(whole)}
        parts = {name: cut(array, kinds[name], rank, size) for name, array in whole.items()}
        kinds = {name: "replicate" if parts[name] is None else kind for name, kind in kinds.items()}
        found = plan.load(Sharding(rank, size, {f"^{_escaped(name)}$": kind for name, kind in kinds.items()}))
    for name, array in whole.items():
        expected = array if parts[name] is None else parts[name]
        assert np.array_equal(as_integers(found[name]), expected)


def as_integers(array: mx.array) -> np.ndarray[Any, Any]:
    return np.frombuffer(bytes_of(array), f"u{array.itemsize}").reshape(array.shape)


def _escaped(name: str) -> str:
    import re

    return re.escape(name)


def check_read_once(sources: list[NotedSource], allowed: int) -> None:
    """No byte is read more often than allowed (again for the check of a tie, and for ends that are cut differently)."""
    for source in sources:
        counts = np.zeros(source.size, int)
        for offset, length in source.reads:
            counts[offset : offset + length] += 1
        assert counts.max(initial=0) <= allowed


ROW = 300_000


@pytest.mark.parametrize(("kind", "rank"), [("column", 0), ("column", 1), ("expert", 1), ("packed", 1)])
def test_only_the_runs_that_a_shard_needs_are_read(tmp_path: Path, kind: Kind, rank: int) -> None:
    """Experts stacked and joined: rows of 300 kB, so that no gap is short enough to be read along."""
    rng = np.random.default_rng(5)
    arrays = {f"e.{n}.{part}": rng.integers(0, 256, (4, ROW), np.uint8) for n in range(2) for part in ("gate", "up")}
    tensors = {name: of_array(array, "U8") for name, array in arrays.items()}
    rule = WeightConverter([r"e\.*.gate", r"e\.*.up"], "e", [MergeModulelist(0), Concatenate(1)])
    whole = np.concatenate([np.stack([arrays[f"e.{n}.{part}"] for n in range(2)]) for part in ("gate", "up")], 1)
    with in_memory(tensors, tmp_path) as opened:
        checkpoint, (source,) = with_sources(opened, NotedSource)
        plan = World(tensors, (rule,)).plan(checkpoint)
        found = plan.load(Sharding(rank, 2, {"e": kind}), threads=2)["e"]
    expected = cut(whole, kind, rank, 2)
    assert expected is not None
    assert bytes_of(found) == expected.tobytes()
    assert sum(length for _, length in source.reads) == expected.nbytes


def test_short_gaps_may_be_read_along_but_no_byte_twice(tmp_path: Path) -> None:
    array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    tensors = {"w": of_array(array, "U16")}
    rule = WeightConverter("w", "v", [Transpose()])
    with in_memory(tensors, tmp_path) as opened:
        checkpoint, (source,) = with_sources(opened, NotedSource)
        found = World(tensors, (rule,)).plan(checkpoint).load(Sharding(1, 4, {"v": "column"}))["v"]
    assert bytes_of(found) == np.ascontiguousarray(array.T[16:32]).tobytes()
    assert sum(length for _, length in source.reads) <= array.nbytes


def test_the_bias_of_a_column_parallel_layer_is_cut_too(tmp_path: Path) -> None:
    tensors = {"q.bias": of_array(np.arange(8, dtype=np.uint8), "U8")}
    with in_memory(tensors, tmp_path) as checkpoint:
        found = World(tensors, ()).plan(checkpoint).load(Sharding(1, 2, {r"^q\.": "column"}))
    assert bytes_of(found["q.bias"]) == bytes(range(4, 8))


def test_of_values_computed_one_by_one_a_rank_reads_its_part(tmp_path: Path) -> None:
    from weightloom.engine.planning.cast import with_dtype

    numbers = np.arange(8, dtype=np.uint16) << 7
    tensors = {"w": of_array(numbers.reshape(4, 2), "BF16")}
    with in_memory(tensors, tmp_path) as opened:
        checkpoint, (source,) = with_sources(opened, NotedSource)
        plan = with_dtype(World(tensors, (WeightConverter("w", ["a", "b"], [Chunk()]),)).plan(checkpoint), "F32")
        found = plan.load(Sharding(0, 2, {"a": "column"}))
    widened = (numbers.astype(np.uint32) << 16).tobytes()
    assert (bytes_of(found["a"]), bytes_of(found["b"])) == (widened[:8], widened[16:])
    assert sum(length for _, length in source.reads) == 12
