"""A parameter that PEFT changes by itself, not as a layer's weight: a stack of experts, or a matrix of a module."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weightloom.engine import TensorSpec
from weightloom.runtime.adapting.peft_factors import Factor

MATRIX, STACK = 2, 3
_NESTED = re.compile(r"\.base_layer(?=\.|$)")


def is_stack(spec: TensorSpec) -> bool:
    """Say whether a parameter is a stack of matrices, (E, rows, columns)."""
    return len(spec.shape) == STACK


@dataclass(frozen=True, slots=True)
class Bare:
    """A parameter of the model, its spec, its two factors, and whether A is over its rows (`turned`)."""

    parameter: str
    spec: TensorSpec
    a: Factor
    b: Factor
    turned: bool

    @property
    def experts(self) -> int:
        """How many matrices the parameter has."""
        return self.spec.shape[0] if is_stack(self.spec) else 1

    @property
    def is_square(self) -> bool:
        """Whether its shape does not say over which dim A is."""
        return self.spec.shape[-1] == self.spec.shape[-2]


def published(module: str) -> str:
    """Give the name of a module without the nesting that several of its parameters make."""
    return _NESTED.sub("", module)
