"""What checkpoints installed architectures take: each with its task, the layouts, and how its answers were verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import Offer, PluginManager
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT


@dataclass(frozen=True, slots=True)
class Served:
    """An architecture under one of its model types: the entry point that leads to it, and the layouts that it takes."""

    model_type: str
    architecture: Architecture
    offer: Offer
    layouts: tuple[str, ...]


def served(manager: PluginManager) -> Iterator[Served]:
    """Give all architectures by model type, the one first that is taken where the files say no more.

    Every plugin is imported; what cannot be used is among the manager's problems.
    """
    for offer in manager.offers():
        layouts = layouts_of(offer.model_type)
        found = [each for each in manager.architectures(offer.model_type) if each.source == offer.distribution]
        yield from (Served(offer.model_type, each, offer, layouts) for each in found)


def layouts_of(model_type: str) -> tuple[str, ...]:
    """Give the layouts in which checkpoints of a model type are read."""
    choice = find_choice(None, Wish(model_type=model_type))
    known = (DEFAULT_LAYOUT,) if choice is None else choice.known
    return tuple(sorted(known, key=lambda layout: (layout != DEFAULT_LAYOUT, layout)))
