"""Which tensors belong together because one holds codes and the others say what the codes stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weightloom.engine.spec import TensorSpec

# MLX: PATH.weight with PATH.scales, PATH.biases; a stack NAME with NAME_scales, NAME_biases. Published files:
# NAME_scale_inv (blocks of FP8), NAME_scale, and for all of a tensor NAME_scale_2, NAME_global_scale.
_BESIDE_MODULE = (".scales", ".biases", ".global_scale")
_BESIDE_NAME = ("_scales", "_biases", "_scale_inv", "_scale", "_scale_2", "_global_scale")
_SCALES = (".scales", "_scales", "_scale_inv", "_scale")
_BIASES = (".biases", "_biases")
_WEIGHT = ".weight"


@dataclass(frozen=True, slots=True)
class Companions:
    """The names of the tensors that say what the codes of `owner` stand for."""

    owner: str
    names: tuple[str, ...]

    @property
    def scales(self) -> tuple[str, ...]:
        """Those that are linear in the values: scales of groups or blocks, and biases."""
        return tuple(name for name in self.names if name.endswith((*_SCALES, *_BIASES)))

    @property
    def have_scales(self) -> bool:
        """Say whether there are scales of groups or blocks."""
        return any(name.endswith(_SCALES) for name in self.names)


def companions(specs: Mapping[str, TensorSpec]) -> dict[str, Companions]:
    """Give, by the name of the codes, what belongs to them; names of plain tensors are not in it."""
    found = ((name, tuple(other for other in _places(name) if other in specs)) for name in specs)
    return {name: Companions(name, others) for name, others in found if others}


def owners(found: Iterable[Companions]) -> dict[str, str]:
    """Give, by the name of each companion, the name of the codes."""
    return {name: each.owner for each in found for name in each.names}


def _places(name: str) -> tuple[str, ...]:
    beside = tuple(name + end for end in _BESIDE_NAME)
    if not name.endswith(_WEIGHT):
        return beside
    return (*(name.removesuffix(_WEIGHT) + end for end in _BESIDE_MODULE), *beside)
