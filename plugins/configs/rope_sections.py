"""Where a config has its rotary settings: two forms, each for all layers or by layer type, into one section a type.

Transformers 4 writes `rope_theta` and `partial_rotary_factor` at the top and the kind in `rope_scaling`; of layers that
slide, `rope_local_base_freq` is the base, and they are not scaled. Transformers 5 writes all in `rope_parameters`, or
one such section for each layer type. A setting that is there twice must be the same in both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.plugins.configs.checks import FULL, SLIDING
from weightloom.plugins.configs.config import refuse_unless

_AT_THE_TOP = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")
_LOCAL = "rope_local_base_freq"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and the field of the config that has it."""

    field: str
    value: Any


@dataclass(frozen=True)
class Section:
    """The settings of one kind of layer, and the place that those that lack would be expected in."""

    place: str
    settings: Mapping[str, Setting]

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def field(self, name: str) -> str:
        """Give the config's field of a setting, there or not."""
        return self.settings[name].field if name in self.settings else f"{self.place}.{name}"

    def value(self, name: str, default: Any = None) -> Any:
        """Give the value of a setting."""
        return self.settings[name].value if name in self.settings else default


def with_local_base(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the content with the usual base, 10000, for sliding layers where it says none.

    Families such as Gemma 3 mean one even so: what a config says for all layers is then for those that see all alone.
    """
    section = content.get("rope_parameters")
    own = section.get(SLIDING) if isinstance(section, Mapping) else None
    said = isinstance(own, Mapping) and own.get("rope_theta") is not None
    return content if said or content.get(_LOCAL) is not None else {**content, _LOCAL: 10000.0}


def rope_sections(content: Mapping[str, Any], layer_types: Iterable[str]) -> dict[str, Section]:
    """Give the section of each layer type.

    Raises ConfigError, naming the field, where there is none, or where two places differ.
    """
    for name in ("rope_scaling", "rope_parameters"):
        section = content.get(name)
        refuse_unless(section is None or isinstance(section, Mapping), name, section, "an object or null")
        _refuse_mixed(name, section or {})
    return {layer_type: _section(content, layer_type) for layer_type in dict.fromkeys(layer_types)}


def _section(content: Mapping[str, Any], layer_type: str) -> Section:
    scaling, parameters = content.get("rope_scaling") or {}, content.get("rope_parameters") or {}
    local = layer_type == SLIDING and content.get(_LOCAL) is not None
    # What is for all layers says nothing of a type that has its own.
    shared = layer_type == FULL or not (local or _by_type(parameters))
    scaled = _settings("rope_scaling", scaling, layer_type) if shared or _by_type(scaling) else {}
    own = _settings("rope_parameters", parameters, layer_type)
    top = {name: Setting(name, content[name]) for name in _AT_THE_TOP if name in content}
    if local:
        top |= {"rope_theta": Setting(_LOCAL, content[_LOCAL])}
    said = _joined(scaled, own)
    place = _place("rope_parameters", parameters, layer_type) if own and not scaled else "rope_scaling"
    return Section(place, _joined(said, top) if shared or local else {**top, **said})


def _by_type(section: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Mapping) for value in section.values())


def _refuse_mixed(name: str, section: Mapping[str, Any]) -> None:
    """Raise ConfigError for settings beside sections by layer type: whose they are is not said."""
    beside = sorted(key for key, value in section.items() if value is not None and not isinstance(value, Mapping))
    if beside and _by_type(section):
        raise ConfigError(
            f"{name} has {beside[0]} {shown(section[beside[0]])} beside sections by layer type",
            expected="settings for all layers, or a section for each layer type",
            field=f"{name}.{beside[0]}",
        )


def _place(name: str, section: Mapping[str, Any], layer_type: str) -> str:
    return f"{name}.{layer_type}" if _by_type(section) else name


def _settings(name: str, section: Mapping[str, Any], layer_type: str) -> dict[str, Setting]:
    """Give the settings of a section, for a layer type where it is by type, the kind under `rope_type`."""
    place, own = _place(name, section, layer_type), section.get(layer_type) if _by_type(section) else section
    if not isinstance(own, Mapping):
        raise ConfigError(
            f"{name} has no section for {layer_type!r}",
            expected=f"one for each layer type that the model has; there are {', '.join(sorted(section))}",
            field=place,
        )
    found = {key: Setting(f"{place}.{key}", value) for key, value in own.items() if key != "type"}
    return _joined(found, {"rope_type": Setting(f"{place}.type", own["type"])}) if "type" in own else found


def _joined(first: Mapping[str, Setting], second: Mapping[str, Setting]) -> dict[str, Setting]:
    """Join settings of two places, null giving way; raises ConfigError where both have one and they differ."""
    for name in sorted(first.keys() & second.keys()):
        one, other = first[name], second[name]
        if None not in (one.value, other.value) and one.value != other.value:
            raise ConfigError(
                f"{one.field} is {shown(one.value)} and {other.field} is {shown(other.value)}",
                expected="the same in both, or one of them",
                hint="remove the one that is out of date",
                field=one.field,
            )
    return {**second, **first, **dict(_filled(first, second))}


def _filled(first: Mapping[str, Setting], second: Mapping[str, Setting]) -> Iterator[tuple[str, Setting]]:
    yield from ((name, second[name]) for name in first if name in second and first[name].value is None)
