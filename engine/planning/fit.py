"""Fit: which parameter a name leads to, the base model's prefix taken into account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.planning.report import Difference
from weightloom.engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Fit:
    """The parameters to reach; `params` None is an open target, which any name fits.

    A name fits exactly first; then with the base prefix put on; then with it taken off. So a head model loads
    a base model's checkpoint and the other way round, and an exact name is never moved.
    """

    params: Mapping[str, TensorSpec] | None
    base: str = ""

    @property
    def open(self) -> bool:
        """Say whether any name fits."""
        return self.params is None

    def name(self, name: str) -> str | None:
        """Give the parameter that a name leads to, or None."""
        if self.params is None or name in self.params:
            return name
        if self.base:
            with_base = f"{self.base}.{name}"
            if with_base in self.params:
                return with_base
            without = name.removeprefix(f"{self.base}.")
            if without in self.params:
                return without
        return None

    def names_of(self, names: Sequence[str]) -> Sequence[str | None]:
        """Give the parameter that each of many names leads to, or None."""
        params = self.params
        return names if params is None else [name if name in params else self.name(name) for name in names]

    def required(self, name: str) -> str:
        """Give the parameter that a name leads to; raises PlanError when there is none."""
        found = self.name(name)
        if found is None:
            raise PlanError(f"the rule makes {name}, which is no parameter", expected="targets that are parameters")
        return found

    def is_parameter(self, name: str) -> bool:
        """Say whether a name is a known parameter as it stands."""
        return self.params is not None and name in self.params

    def takes(self, name: str, spec: TensorSpec) -> bool:
        """Say whether a tensor can be this parameter, as far as that is known."""
        wanted = self.spec(name)
        return wanted is None or spec == wanted or self.agrees(spec, wanted)

    def spec(self, name: str) -> TensorSpec | None:
        """Give a parameter's spec, or None where it is not known."""
        return None if self.params is None else self.params.get(name)

    def agrees(self, spec: TensorSpec, wanted: TensorSpec) -> bool:
        """Say whether a tensor can be a parameter: the same shape, and one class of dtype."""
        return spec.shape == wanted.shape and _one_class(spec, wanted)

    def differences(self, spec: TensorSpec, wanted: TensorSpec) -> tuple[Difference, ...]:
        """Say why a tensor cannot be a parameter; () where it can."""
        shape = () if spec.shape == wanted.shape else (_shapes_differ(spec.shape, wanted.shape),)
        return shape if _one_class(spec, wanted) else (*shape, "dtype class")


def _shapes_differ(shape: tuple[int, ...], wanted: tuple[int, ...]) -> Difference:
    return "transposed" if len(shape) == 2 and shape == wanted[::-1] else "shape"


def _one_class(spec: TensorSpec, wanted: TensorSpec) -> bool:
    return wanted.dtype is None or spec.dtype is None or _dtype_class(spec.dtype) == _dtype_class(wanted.dtype)


def _dtype_class(name: str) -> str:
    """Floats of 8 bits and less are codes that need their scales, never plain floats; F64 is held by no parameter."""
    dtype = DTYPES[name]
    if dtype.kind == "float" and dtype.bits <= 8:
        return "code"
    return dtype.kind if dtype.mlx is not None else name
