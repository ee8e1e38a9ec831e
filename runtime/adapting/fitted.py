"""What an adapter's own format comes to on a model: the rules for its names, and the scale of each factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weightloom.engine import RuleSet, TensorSpec


@dataclass(frozen=True)
class Fitted:
    """`names` lead to the form that `plan_adapter` takes; `scales` are by the factors' names in the file.

    `decomposed`: every change has magnitudes too (DoRA). `notes` says what was set aside.
    """

    names: RuleSet
    scales: Mapping[str, float]
    decomposed: bool
    notes: tuple[str, ...] = ()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


Fit = Callable[[Mapping[str, TensorSpec], str], Fitted]
"""Fits an adapter to a model's parameters, whose base model has a prefix; raises PlanError for ranks or shapes."""
