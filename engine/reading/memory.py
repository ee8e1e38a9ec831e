"""How much memory a load takes, from headers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.reading import tie_check
from weightloom.engine.reading.gather import scratch_needed
from weightloom.engine.views.program import beside_bytes

if TYPE_CHECKING:
    from weightloom.engine.plan import Plan


@dataclass(frozen=True, slots=True)
class Memory:
    """Predicted bytes of a load: the parameters, and the scratch of one thread.

    `host` is what the process allocates beside MLX's arrays, `device` what MLX does; on the CPU both are main
    memory, and `total` is their sum.
    """

    device: int
    host: int

    @property
    def total(self) -> int:
        """Host and device together."""
        return self.device + self.host


def memory(plan: Plan, threads: int = 1) -> Memory:
    """Predict: each parameter once, plus `threads` times the largest scratch that one group needs."""
    values = 0
    scratch = 0
    seen: set[int] = set()
    for group in plan.groups:
        program = group.program
        if id(program) in seen:
            continue
        seen.add(id(program))
        if program.is_structural:
            scratch = max(scratch, *(scratch_needed(view) for view in program.views()[: len(group.targets)]), 0)
        else:
            beside = sum(beside_bytes(step) for step in program.moves)
            values = max(values, 2 * sum(spec.nbytes for spec in (*program.in_specs, *program.out_specs)) + beside)
    return Memory(plan.nbytes + values, max(threads, 1) * scratch + tie_check.scratch(plan))


def peak_bytes(plan: Plan) -> int:
    """Give host and device together, on one thread."""
    return memory(plan).total
