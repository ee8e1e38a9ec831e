"""The tensors of a checkpoint as modules: what stands beside a weight, by the ends of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine import TensorSpec
from weightloom.engine.errors import PlanError
from weightloom.engine.mapping.claims import Drop, KeepDtype
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.plugins.quantization import PackedModule

WEIGHT = "weight"
ACTIVATIONS = Drop(
    [r"\.(?:input_scale|activation_scale|input_global_scale|k_scale|v_scale)"],
    why="Scales of activations and of caches: what is multiplied here stays in floats.",
)
FACTORS = KeepDtype([r"global_scale"], why="A factor of all of a row: it has no bits to spare.")
RULES = RuleSet((ACTIVATIONS, FACTORS))


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
    """Give the names of tensors of some dtypes that can be weights: of two dims or more."""
    return (name for name, spec in specs.items() if spec.dtype in dtypes and len(spec.shape) > 1)


def missing(weight: str, spec: TensorSpec, wanted: str) -> PlanError:
    """Give the error for codes without their scales."""
    return PlanError(
        f"{weight} holds codes, {spec}, and there is no {wanted}",
        expected="a scale for every quantized weight, in whichever file",
        hint="get the checkpoint anew: codes without their scale are never taken for numbers",
        tensor=weight,
    )


def needed(weight: str, names: Iterable[str], specs: Mapping[str, TensorSpec]) -> tuple[str, ...]:
    """Give the names of a module's tensors; raises PlanError, naming the first that is not there."""
    found = tuple(names)
    for name in found:
        if name not in specs:
            raise missing(weight, specs[weight], name)
    return found


def refuse_orphans(specs: Mapping[str, TensorSpec], modules: Iterable[PackedModule], ends: tuple[str, ...]) -> None:
    """Raise PlanError for a scale that belongs to no module."""
    taken = {name for each in modules for name in each.packed.sources}
    lone = next((name for name in specs if name.endswith(ends) and name not in taken), None)
    if lone is not None:
        raise PlanError(
            f"{lone} is a scale, {specs[lone]}, and there are no codes that it belongs to",
            expected="codes of a quantized weight beside every scale",
            hint="get the checkpoint anew, all files of it",
            tensor=lone,
        )
