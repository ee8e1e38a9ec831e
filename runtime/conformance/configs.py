"""What an architecture owes to its model types and its configs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weightloom.engine.errors import WeightloomError
from weightloom.engine.mapping.patterns import compile_source
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.modules.binding import param_specs
from weightloom.runtime.conformance.making import built
from weightloom.runtime.conformance.sample import Sample
from weightloom.runtime.conformance.subject import Subject

WRONG: tuple[object, ...] = ("many", [], {}, -1, 10**40, True, None)


def it_is_found_by_every_model_type(subject: Subject) -> None:
    """An entry point leads from each model type to the architecture, and importing it raises nothing."""
    for model_type in subject.architecture.model_types:
        manager = PluginManager()
        offered = [each.name for each in manager.architectures(model_type)]
        assert subject.architecture.name in offered, f"{model_type}: offered are {offered}"
        assert not manager.problems, manager.problems


def every_wrong_field_is_named(subject: Subject) -> None:
    """A field of the wrong type or size is read as it is, or refused by name; nothing but our errors escapes."""
    config = subject.config
    for field in config:
        if field in subject.sample.unread:
            continue
        for value in WRONG:
            said = _refusal(subject.architecture, {**config, field: value})
            assert said is None or _names(said, field), f"{field} = {value!r} is refused without its name: {said}"


def _names(error: WeightloomError, field: str) -> bool:
    return field in (error.field or "") or field in str(error)


def _refusal(architecture: Architecture, config: dict[str, Any]) -> WeightloomError | None:
    try:
        architecture.read_config(config)
    except WeightloomError as error:
        return error
    return None


def sharding_cuts_something(architecture: Architecture, samples: tuple[Sample, ...]) -> None:
    """Every pattern of the sharding plan matches a parameter of some sample."""
    names = {name for each in samples for name in _names_of(architecture, each)}
    patterns = {text: compile_source(text, {}, anchored=False) for text in architecture.sharding}
    idle = [text for text, pattern in patterns.items() if not any(map(pattern.search, names))]
    assert not idle, f"sharding patterns that match no parameter: {idle}"


def _names_of(architecture: Architecture, sample: Sample) -> Iterator[str]:
    if sample.model_type in architecture.model_types:
        yield from param_specs(built(architecture, sample.config))
