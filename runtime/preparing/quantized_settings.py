"""What a config says of quantized modules: of all of them, and of some by name.

Names in a config are those of its files, or already those of the modules; both are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine import Plan
from weightloom.engine.errors import ConfigError
from weightloom.engine.quantizing.inference import Stated
from weightloom.engine.quantizing.quantization import MODES
from weightloom.engine.show import listed

SECTIONS = ("quantization", "quantization_config")
_SCALES = (".scales", "_scales")
_PARTS = (*_SCALES, ".biases", "_biases", ".weight", ".bias")


def settings_in(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the section of MLX's quantization; of another format's, which names its method, nothing."""
    return next((section for _, section in _sections(config)), {})


def sections_apart(config: Mapping[str, Any]) -> Iterator[str]:
    """Say where two sections of MLX's quantization differ, of which the first one counts."""
    found = list(_sections(config))
    for name, section in found[1:]:
        first, counts = found[0]
        if section != counts:
            odd = sorted(key for key in {*section, *counts} if section.get(key) != counts.get(key))
            yield f"{first} and {name} differ in {listed(odd, 3)}: {first} counts"


def _sections(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in SECTIONS:
        section = config.get(name)
        if isinstance(section, Mapping) and section and section.get("quant_method") is None:
            yield name, section


def paths_in_files(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Give, by the path of a quantized module, the paths in the files that its scales come from."""
    return {
        module_of(target): tuple(dict.fromkeys(module_of(source) for source in group.sources))
        for group in plan.groups
        for target in group.targets
        if target.endswith(_SCALES)
    }


def names_in_files(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Give the same with the paths that the words come from: a file may have matrices apart, and scales in a stack."""
    found: dict[str, tuple[str, ...]] = {}
    for path, names in paths_in_files(plan).items():
        words = (plan.by_target.get(name) for name in (path, f"{path}.weight"))
        beside = (module_of(source) for group in words if group is not None for source in group.sources)
        found[path] = tuple(dict.fromkeys((*names, *beside)))
    return found


def module_of(tensor: str) -> str:
    """Give the path of the module, or of the stack, that a tensor belongs to."""
    return next((tensor.removesuffix(end) for end in _PARTS if tensor.endswith(end)), tensor)


@dataclass(frozen=True)
class Settings:
    """A section of MLX's quantization; `in_files` leads from a module's path to those that the files have for it."""

    section: Mapping[str, Any]
    in_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, path: str) -> Stated:
        """Say what is stated of a module: by its name, or of all. Raises ConfigError for what cannot be."""
        self._refuse_odd(path)
        own = [name for name in self._names(path) if isinstance(self.section.get(name), Mapping)]
        if not own:
            return _stated(self.section, "quantization", own=False)
        found = {name: _stated(self._whole(name), f"quantization.{name}", own=True) for name in own}
        first = found[own[0]]
        other = next((name for name, each in found.items() if each != first), None)
        if other is not None:
            raise ConfigError(
                f"{own[0]} has {first} and {other} has {found[other]}, and both are of {path}",
                expected="the same of both",
                tensor=path,
                field=f"quantization.{other}",
            )
        return first

    def _refuse_odd(self, path: str) -> None:
        for name in self._names(path):
            if name in self.section and not isinstance(self.section[name], Mapping | bool):
                raise ConfigError(
                    f"quantization.{name} is {self.section[name]!r:.80}",
                    expected="bits, group_size and mode, or true or false",
                    tensor=path,
                    field=f"quantization.{name}",
                )

    def kept_dense(self, path: str) -> bool:
        """Say whether the section says that a module is not quantized."""
        return any(self.section.get(name) is False for name in self._names(path))

    def beyond(self, paths: Mapping[str, object]) -> Iterator[str]:
        """Give the names that the section speaks of and that lead to none of these modules."""
        known = {name for path in paths for name in self._names(path)}
        yield from (name for name, own in self.section.items() if isinstance(own, Mapping) and name not in known)

    def _names(self, path: str) -> tuple[str, ...]:
        return (path, *self.in_files.get(path, ()))

    def _whole(self, name: str) -> Mapping[str, Any]:
        """What an entry leaves out is as of all, but the mode: an entry without one is affine."""
        shared = {key: self.section[key] for key in ("bits", "group_size") if key in self.section}
        return {**shared, **self.section[name]}


def _stated(section: Mapping[str, Any], where: str, *, own: bool) -> Stated:
    mode = section.get("mode")
    if mode is not None and mode not in MODES:
        raise ConfigError(f"{where}.mode is {mode!r}", expected=", ".join(MODES), field=f"{where}.mode")
    return Stated(_whole(section, "bits", where), _whole(section, "group_size", where), mode, own)


def _whole(section: Mapping[str, Any], name: str, where: str) -> int | None:
    value = section.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ConfigError(f"{where}.{name} is {value!r}", expected="a whole number", field=f"{where}.{name}")
    return value
