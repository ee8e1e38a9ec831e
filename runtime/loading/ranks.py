"""Several processes, one model: whether this is one of them, and what part of the model it holds.

`mlx.launch` (or MPI) starts the processes; MLX connects them, over a ring of sockets, MPI or NCCL.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from weightloom.engine.errors import UsageError
from weightloom.engine.planning.composing.part import part_of
from weightloom.engine.planning.sharding import Sharding
from weightloom.engine.reading.read_bytes import reading_notes
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.parallel import Staged, cut_module, sharding_of
from weightloom.runtime.adapting.adapters import ReadAdapter
from weightloom.runtime.adapting.parting import at_stage, cut_among
from weightloom.runtime.preparing.prepare import Prepared
from weightloom.runtime.terminal.text import size

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn

    from weightloom.engine.plan import Plan

Way = Literal["tensor", "pipeline"]
WAYS: tuple[Way, ...] = get_args(Way)

# What launchers set in each process: mlx.launch, Open MPI, and MPICH and its kin.
_LAUNCHED = ("MLX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_COUNTERS = Path("/proc/self/io")


@dataclass(frozen=True, slots=True)
class Share:
    """What one rank holds: bytes of parameters, those of the whole model, and what it read for them.

    `read` is None where the system does not count what a process reads.
    """

    group: mx.distributed.Group
    held: int
    whole: int
    read: int | None

    def __str__(self) -> str:
        read = "" if self.read is None else f", read {size(self.read)}"
        where = f"rank {self.group.rank()} of {self.group.size()}"
        return f"{where}: holds {size(self.held)} of {size(self.whole)}{read}"


@dataclass(frozen=True, slots=True)
class Part:
    """One rank's part of a model: the plan that loads it, how its parameters are cut, and remarks."""

    group: mx.distributed.Group
    plan: Plan
    sharding: Sharding | None
    notes: tuple[str, ...]

    def share(self, module: nn.Module, whole: int, before: int | None) -> Share:
        """Say what was loaded, of `whole` bytes, and what was read since this process had read `before`."""
        now = bytes_read()
        held = sum(array.nbytes for array in parameters(module).values())
        return Share(self.group, held, whole, None if now is None or before is None else now - before)


def find_group() -> mx.distributed.Group | None:
    """Give the group of processes that this one was started in; None where it was started alone."""
    if not any(name in os.environ for name in _LAUNCHED):
        return None
    import mlx.core as mx

    group = mx.distributed.init()
    return group if group.size() > 1 else None


def need_group() -> mx.distributed.Group:
    """Give the group of processes; raises UsageError where this one was started alone."""
    group = find_group()
    if group is None:
        raise UsageError(
            "this process was started alone",
            expected="several processes, one a rank, for a model that is cut among them",
            hint="start it with mlx.launch -n 2 ...",
            field="sharding",
        )
    return group


def take_part(found: Prepared, how: Sharding | Way) -> Part:
    """Cut a module, in place, to this rank's part, and give that part's plan.

    `tensor` cuts parameters as the architecture says, `pipeline` gives each rank some of the layers, a Sharding
    cuts as it says. Raises UsageError where the model or the group cannot do it, PlanError for what does not divide.
    """
    if isinstance(how, str) and how not in WAYS:
        raise UsageError(f"sharding {how!r}", expected=f"a Sharding, or one of {', '.join(WAYS)}", field="sharding")
    group = need_group()
    if how == "pipeline":
        return _stage(found, group)
    if isinstance(how, str):
        how, notes = sharding_of(found.architecture, found.module, group.rank(), group.size())
    else:
        notes = []
        _need_cuts(found, how)
    cut_module(found.module, how, group)
    return Part(group, found.plan, how, (*notes, *reading_notes(found.plan, how)))


def parted(adapters: Sequence[ReadAdapter], module: nn.Module, part: Part) -> tuple[ReadAdapter, ...]:
    """Give this rank's part of adapters, for a module that was cut; raises PlanError as `cut_among` does."""
    if part.sharding is not None:
        return cut_among(adapters, part.sharding)
    return at_stage(adapters, parameters(module))


def _need_cuts(found: Prepared, sharding: Sharding) -> None:
    if all(sharding.kind_of(name) == "replicate" for name in parameters(found.module)):
        raise UsageError(
            f"the sharding cuts no parameter of {found.architecture.name}: no pattern matches one",
            expected=f"patterns on names such as {next(iter(parameters(found.module)))}",
            field="sharding",
        )


def _stage(found: Prepared, group: mx.distributed.Group) -> Part:
    if not isinstance(found.module, Staged):
        raise UsageError(
            f"{found.architecture.name} cannot be run by stages",
            expected="a model of layers that are done one after another",
            hint="run it as one process",
            field="sharding",
        )
    found.module.at_stage(group)
    return Part(group, part_of(found.plan, parameters(found.module).keys()), None, ())


def agreed(token: mx.array, share: Share | None) -> mx.array:
    """Give the first rank's token, () int, on all ranks, for rounding may differ between them."""
    if share is None:
        return token
    import mlx.core as mx

    # All ranks must come to this sum in the same order as to those before it, so theirs depends on their token too.
    own = token.astype(mx.int32) * int(share.group.rank() == 0)
    return mx.distributed.all_sum(own, group=share.group)


def bytes_read() -> int | None:
    """Give how many bytes this process has read so far, where the system counts them (Linux)."""
    try:
        lines: Sequence[str] = _COUNTERS.read_text().splitlines()
    except OSError:
        return None
    found = dict(line.split(": ") for line in lines)
    return int(found["rchar"])
