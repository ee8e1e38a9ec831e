"""The laws on bytes over every rule set that ships: real files whose names its own patterns match."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.laws.disk import shard_bytes
from tests.laws.shipped import SHIPPED, Fitting, fittings
from tests.laws.worlds import Tensor, bytes_of, tensor
from weightloom.engine import Checkpoint, Plan, Sharding, TensorSpec, WeightConverter
from weightloom.engine.carrier import carried, spec_of
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.reading.memory import memory
from weightloom.rules import load_rules

THREADS = 3


fittings_of = cache(fittings)


def filled(spec: TensorSpec, seed: int, computed: bool) -> Tensor:
    """Any bits at all; numbers of some size where values are computed."""
    assert spec.dtype is not None
    if not computed or spec.dtype != "F32":
        return tensor(spec.dtype, spec.shape, seed)
    values = np.random.default_rng(seed).standard_normal(spec.shape, np.float32)
    return Tensor(spec.dtype, spec.shape, values.tobytes())


@pytest.mark.parametrize(("family", "layout"), SHIPPED)
def test_what_is_read_is_written_and_shards_add_up(family: str, layout: str, tmp_path: Path) -> None:
    for number, found in enumerate(fittings_of(family, layout)):
        if found.tensors:
            (tmp_path / str(number)).mkdir()
            check_all(found, tmp_path / str(number))
        else:
            assert not any(isinstance(rule, Renaming) for rule in found.rules)


def check_all(found: Fitting, folder: Path) -> None:
    expected = found.plan(Checkpoint.from_specs(found.tensors))
    computed = any(not group.program.is_structural for group in expected.groups)
    file = {name: filled(spec, seed, computed) for seed, (name, spec) in enumerate(sorted(found.tensors.items()))}
    (folder / "model.safetensors").write_bytes(shard_bytes(list(file), list(file)[::-1], file, None, {}, 0))
    with Checkpoint.open(folder / "model.safetensors") as checkpoint:
        plan = found.plan(checkpoint)
        # Law 3: a checkpoint that cannot be read gives the same plan.
        assert (plan.groups, plan.kept, plan.report) == (expected.groups, expected.kept, expected.report)
        loaded = plan.load()
        # Law 4.
        assert {name: spec_of(array) for name, array in loaded.items()} == {
            name: carried(spec) for name, spec in plan.params.items()
        }
        # Law 1.
        assert plan.invertible
        (written,) = plan.save(loaded, folder / "out")
        assert written.read_bytes() == (folder / "model.safetensors").read_bytes()
        check_shards(plan, loaded)
    check_memory(plan)


def check_shards(plan: Plan, loaded: dict[str, mx.array]) -> None:
    """Law 6: the first axis in two parts, of everything that has an even one and whose group only moves elements."""
    moved = {name for group in plan.groups if group.program.is_structural for name in group.targets}
    even = [name for name in sorted(moved) if loaded[name].shape and loaded[name].shape[0] % 2 == 0]
    sharding = {rf"^{name.replace('.', '[.]')}$": "vocab" for name in even}
    parts = [plan.load(sharding=Sharding(rank, 2, sharding)) for rank in range(2)]  # type: ignore[arg-type]
    for name, whole in loaded.items():
        both = [bytes_of(part[name]) for part in parts]
        assert (both[0] + both[1] if name in even else both[0]) == bytes_of(whole), name


def check_memory(plan: Plan) -> None:
    """Law 9, as far as headers go: the parameters, and for each thread the scratch of one group."""
    assert plan.nbytes == sum(spec.nbytes for group in plan.groups for _, spec in group.made)
    one, more = memory(plan), memory(plan, THREADS)
    assert plan.peak_bytes == one.total
    assert one.device == more.device >= plan.nbytes
    assert more.host <= THREADS * one.host
    held = [sum(spec.nbytes for spec in (*g.program.in_specs, *g.program.out_specs)) for g in plan.groups]
    assert one.device <= plan.nbytes + 2 * max(held)


def test_every_converter_that_ships_takes_part() -> None:
    idle = [
        f"{family} {layout}: {rule.title()}"
        for family, layout in SHIPPED
        for rule in load_rules(family, layout)
        if isinstance(rule, WeightConverter)
        and not any(rule.replace(when=None) in each.used for each in fittings_of(family, layout))
    ]
    assert idle == []
