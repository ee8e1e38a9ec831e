"""The operations that leave out attention heads, or channels between the two halves of an MLP, in all layers alike.

Names are those of Transformers' parameters: q_proj, k_proj, v_proj and o_proj of an attention; gate_proj, up_proj
and down_proj of an MLP. Other tensors that the pattern matches are refused by name, but for biases behind the cut
axis and norms of one head.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any, ClassVar

from weightloom.engine.surgery.config_level import count, level, with_level
from weightloom.engine.surgery.heads import Heads
from weightloom.engine.surgery.kept_blocks import KeptBlocks
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Edit, Operation


@dataclass(frozen=True, slots=True)
class Axis:
    """How a kind of tensor is cut: `units` in all along `dim` from the end, of which some stay."""

    dim: int
    units: int
    keep: tuple[int, ...]


@dataclass(frozen=True)
class PruneWidth(Operation):
    """Leave out units with these `ids` from every layer; a config has one number for all."""

    op: ClassVar[str] = "prune"
    size_field: ClassVar[str]

    ids: tuple[int, ...] = field(default=())

    @abstractmethod
    def axes(self, config: Mapping[str, Any]) -> Mapping[str, Axis]:
        """Give how each kind of tensor is cut, by the name of its module."""

    @abstractmethod
    def untouched(self) -> frozenset[str]:
        """Name the modules that stay as they are."""

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step for each tensor that is cut; raises PlanError for others, and where a layer is left out."""
        axes = self.axes(names.config)
        found = self.matched(names)
        unknown = [name for name in found if _module(name) not in axes and _module(name) not in self.untouched()]
        if unknown:
            raise self.refusal(unknown, "are none that can be cut", f"names of {', '.join(axes)}")
        lacking = [
            name for name in names.specs if _module(name) in axes and name not in names.owners and name not in found
        ]
        if lacking or not any(_module(name) in axes for name in found):
            raise self.refusal(
                lacking or found, "would stay as they are", f"a pattern for {', '.join(axes)} of all layers"
            )
        return tuple(edit for name in found for edit in self._cut(names, name, axes.get(_module(name))))

    def _cut(self, names: Names, name: str, axis: Axis | None) -> Iterator[Edit]:
        if axis is None or (name.endswith(".bias") and axis.dim == -1):
            return
        dim = -1 if name.endswith(".bias") else axis.dim
        belongs = names.companions.get(name)
        parts = (name, *(belongs.names if belongs else ()))
        blocked = [part for part in parts if part.removeprefix(name).startswith(("_scale", "_global"))]
        if blocked:
            raise self.refusal(
                blocked, "are scales of blocks, which a cut would shift", "plain or MLX's packed weights"
            )
        if belongs is None and names.specs[name].shape[dim] != axis.units * self.size(names.config):
            wanted = f"{axis.units} units of {self.size(names.config)} along axis {dim}"
            raise self.refusal([name], f"are {names.specs[name]}", wanted)
        if len(axis.keep) == axis.units:
            return
        blocks = gcd(axis.units, *(names.specs[part].shape[dim] for part in parts))
        keep = self._blocks(name, axis, axis.units // blocks)
        for part in parts:
            yield Edit(part, KeptBlocks(0, dim, blocks, keep, self.title))

    @abstractmethod
    def size(self, config: Mapping[str, Any]) -> int:
        """Give how many rows or columns a unit has."""

    def _blocks(self, name: str, axis: Axis, width: int) -> tuple[int, ...]:
        """Give the blocks of `width` units that stay; raises PlanError for one that stays in part."""
        kept = sorted({unit // width for unit in axis.keep})
        if len(kept) * width != len(axis.keep):
            raise self.refusal([name], f"are packed in groups of {width} units", f"ids that make up groups of {width}")
        return tuple(kept)

    def check_ids(self, total: int) -> None:
        """Raise PlanError for ids that are not there, or that leave nothing."""
        if max(self.ids) >= total or len(set(self.ids)) >= total:
            raise self.refusal(
                [str(max(self.ids))], f"of {total} {self.size_field}", f"some of 0 to {total - 1}, not all"
            )


@dataclass(frozen=True)
class PruneHeads(PruneWidth):
    """Leave out query heads, and the key and value heads that none of the rest uses."""

    size_field: ClassVar[str] = "num_attention_heads"

    def axes(self, config: Mapping[str, Any]) -> Mapping[str, Axis]:
        """Cut rows of queries, keys and values, and columns of outputs."""
        heads = self._heads(config)
        query, key = Axis(-2, heads.count, heads.kept), Axis(-2, heads.groups, heads.kept_groups)
        return {"q_proj": query, "k_proj": key, "v_proj": key, "o_proj": Axis(-1, heads.count, heads.kept)}

    def untouched(self) -> frozenset[str]:
        """Leave the norms of one head."""
        return frozenset({"q_norm", "k_norm"})

    def size(self, config: Mapping[str, Any]) -> int:
        """Give the size of a head: head_dim, else hidden_size by heads."""
        part = level(config, self.size_field)
        heads = count(part, self.size_field)
        return count(part, "head_dim", count(part, "hidden_size", heads) // heads)

    def changed(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the config with fewer heads; a head has the size that it had."""
        heads = self._heads(config)
        changes = {
            "num_attention_heads": len(heads.kept),
            "num_key_value_heads": len(heads.kept_groups),
            "head_dim": self.size(config),
        }
        return with_level(config, self.size_field, changes)

    def _heads(self, config: Mapping[str, Any]) -> Heads:
        part = level(config, self.size_field)
        total = count(part, self.size_field)
        self.check_ids(total)
        heads = Heads(total, count(part, "num_key_value_heads", total), frozenset(self.ids))
        if not heads.even:
            raise self.refusal(
                map(str, sorted(heads.removed)),
                f"leave some of the {heads.groups} key heads with more queries than others",
                "as many of each key head's queries, or all of some",
            )
        return heads


@dataclass(frozen=True)
class PruneChannels(PruneWidth):
    """Leave out channels between the two halves of every MLP."""

    size_field: ClassVar[str] = "intermediate_size"

    def axes(self, config: Mapping[str, Any]) -> Mapping[str, Axis]:
        """Cut rows of gates and of what goes up, and columns of what goes down."""
        total = count(level(config, self.size_field), self.size_field)
        self.check_ids(total)
        keep = tuple(unit for unit in range(total) if unit not in set(self.ids))
        rows = Axis(-2, total, keep)
        return {"gate_proj": rows, "up_proj": rows, "down_proj": Axis(-1, total, keep)}

    def untouched(self) -> frozenset[str]:
        """Leave nothing."""
        return frozenset()

    def size(self, config: Mapping[str, Any]) -> int:
        """Give one row or column."""
        return 1

    def changed(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the config with fewer channels."""
        total = count(level(config, self.size_field), self.size_field)
        return with_level(config, self.size_field, {self.size_field: total - len(set(self.ids))})


def _module(name: str) -> str:
    """Give the name of the module that a tensor belongs to."""
    return name.rpartition(".")[0].rpartition(".")[2]
