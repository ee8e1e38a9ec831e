"""The tensors of a checkpoint as modules: what stands beside a weight, by the ends of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine import TensorSpec
from weightloom.engine.errors import PlanError

WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module's tensors are: `stem`, then a name of its parts; `joint` is what stands between.

    `a.q_proj` has `a.q_proj.weight` and `a.q_proj.scales` (joint "."), a stack `a.experts.up` has `a.experts.up` and
    `a.experts.up_scales` (joint "_").
    """

    stem: str
    joint: str

    def part(self, name: str) -> str:
        """Give the name of a part; a stack's weight has the stack's own name."""
        return self.stem if self.joint == "_" and name == WEIGHT else f"{self.stem}{self.joint}{name}"

    def parts(self, names: Sequence[str]) -> tuple[str, ...]:
        """Give the names of several."""
        return tuple(map(self.part, names))


def place_of(weight: str) -> Place:
    """Give the place of a weight, or of a stack that has a name of its own."""
    stem = weight.removesuffix(f".{WEIGHT}")
    return Place(stem, "_" if stem == weight else ".")


def coded(specs: Mapping[str, TensorSpec], dtypes: Sequence[str]) -> Iterator[str]:
    """Give the names of tensors of some dtypes that are weights: of two dims or more."""
    return (name for name, spec in specs.items() if spec.dtype in dtypes and len(spec.shape) > 1)


def missing(weight: str, spec: TensorSpec, wanted: str) -> PlanError:
    """Give the error for codes without their scales."""
    return PlanError(
        f"{weight} holds codes, {spec}, and there is no {wanted}",
        expected="a scale for every quantized weight, in whichever file",
        hint="get the checkpoint anew: codes without their scale are never taken for numbers",
        tensor=weight,
    )
