"""The factors in a file of PEFT, by the module that they change, with the rank and the scale that its config gives.

Format: huggingface/peft 0.21, `tuners/lora/layer.py`. `lora_A` is (rank, columns) and `lora_B` (rows, rank); of an
embedding `lora_embedding_A` is (rank, rows) and `lora_embedding_B` (columns, rank).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weightloom.engine import Checkpoint
from weightloom.engine.errors import PlanError
from weightloom.runtime.adapting.adapter_config import NAME, AdapterConfig

_FACTOR = re.compile(
    r"^(?:base_model\.model\.)?(?P<module>.*)\.lora_(?P<embeds>embedding_)?(?P<kind>[AB])(?:\.[\w-]+)*$"
)


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor: its name in the file, its module's name, A or B, its shape, and whether it is an embedding's."""

    name: str
    module: str
    kind: str
    shape: tuple[int, ...]
    embeds: bool

    @property
    def rank(self) -> int | None:
        """The rank that its shape gives; None for what is no matrix."""
        if len(self.shape) < 2:
            return None
        return self.shape[-2] if self.kind == "A" else self.shape[-1]


def factors_in(checkpoint: Checkpoint) -> tuple[Factor, ...]:
    """List the factors in a file, by name."""
    found = ((name, _FACTOR.match(name)) for name in sorted(checkpoint.tensors))
    return tuple(
        Factor(name, match["module"], match["kind"], checkpoint.tensors[name].shape, match["embeds"] is not None)
        for name, match in found
        if match is not None
    )


@dataclass(frozen=True, slots=True)
class Ranked:
    """A factor with what it changes, by the name that patterns match, and how many ranks are folded into its one."""

    factor: Factor
    changes: str
    folded: int = 1


def scales(found: tuple[Ranked, ...], config: AdapterConfig, file: str) -> Mapping[str, float]:
    """Give the scale of each factor by its name; raises PlanError naming every one that has another rank."""
    wrong = tuple(_of_other_rank(found, config))
    if wrong:
        raise PlanError(
            "\n".join(["the adapter's ranks are not those of its config", *(f"  {line}" for _, line in wrong)]),
            expected="one rank in both, since the scale follows from it",
            file=file,
            tensor=wrong[0][0],
        )
    return {each.factor.name: config.scale(each.changes) for each in found}


def _of_other_rank(found: tuple[Ranked, ...], config: AdapterConfig) -> Iterator[tuple[str, str]]:
    for each in found:
        name, seen, wanted = each.factor.name, each.factor.rank, config.rank(each.changes)
        if seen != wanted * each.folded:
            times = f" for each of {each.folded}" if each.folded > 1 else ""
            yield name, f"{name} has rank {seen}, and {NAME} {wanted}{times}"
