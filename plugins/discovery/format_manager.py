"""Finding quantization formats: entry points by quant_method, ours by the same door, only what is needed imported.

Entry-point group `weightloom.formats`; the entry point's name is the quant_method, its value `module:OBJECT`.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import EntryPoint
from typing import cast

from weightloom.engine.errors import ConfigError, PluginError
from weightloom.plugins.discovery.registering import forget, new_hooks, offered_by, why_unusable
from weightloom.plugins.quantization import SECTION, QuantizationFormat, Stored
from weightloom.rules.installed import distribution_of, installed_points

GROUP = "weightloom.formats"


class NotStoredSoError(ConfigError):
    """The config names a method whose formats know none of the checkpoint's tensors."""


class FormatManager:
    """The quantization formats that are installed, and those registered here."""

    def __init__(self, group: str = GROUP) -> None:
        self._group = group
        self._hooks = new_hooks()
        self._problems: dict[str, str] = {}
        self._offered: dict[str, tuple[QuantizationFormat, ...]] = {}

    def register(self, plugin: object, name: str | None = None) -> None:
        """Use a plugin object without an entry point; raises PluginError for one that offers no formats."""
        self._register(plugin, name or type(plugin).__module__)

    def methods(self) -> tuple[str, ...]:
        """List the values of quant_method that are served; imports nothing."""
        registered = (method for offered in self._offered.values() for each in offered for method in each.methods)
        return tuple(sorted({*(point.name for point in installed_points(self._group)), *registered}))

    def problems(self) -> tuple[str, ...]:
        """Import every format, and say of each that cannot be used where it is from and why."""
        self._load(None)
        split = ((name.split(" ", 1), why) for name, why in self._problems.items())
        return tuple(f"{value} ({distribution}): {why}" for (distribution, value), why in split)

    def find(self, stored: Stored) -> tuple[QuantizationFormat, str] | None:
        """Give the format of a checkpoint and what shows it; None where nothing says that it is quantized.

        Raises ConfigError for a quant_method that no format serves, or one whose formats do not know the checkpoint,
        PluginError where several know it.
        """
        self._load(stored.method)
        offered = [each for found in self._offered.values() for each in found]
        if stored.method is not None:
            offered = [each for each in offered if stored.method in each.methods]
        seen = [(each, shown) for each in dict.fromkeys(offered) if (shown := each.detect(stored)) is not None]
        if len(seen) > 1:
            raise _clash(seen)
        if not seen and stored.method is not None:
            raise self._unknown(stored, offered)
        return seen[0] if seen else None

    def _load(self, method: str | None) -> None:
        installed = installed_points(self._group)
        points = installed if method is None else installed.select(name=method)
        for value in {point.value: point for point in points}.values():
            self._load_point(value)

    def _load_point(self, point: EntryPoint) -> None:
        name = f"{distribution_of(point)} {point.value}"
        if name in self._offered or name in self._problems:
            return
        try:
            self._register(point.load(), name)
        # A stranger's code may raise anything, and must not take the others down.
        except (Exception, SystemExit) as error:
            self._problems[name] = why_unusable(error)

    def _register(self, plugin: object, name: str) -> None:
        offered = offered_by(self._hooks, plugin, name, "weightloom_formats")
        wrong = [each for each in offered if not isinstance(each, QuantizationFormat)]
        if wrong or not offered:
            forget(self._hooks, plugin)
            raise PluginError(
                f"plugin {name} offers {wrong[0] if wrong else 'nothing'!r}", expected="quantization formats"
            )
        source = name.partition(" ")[0]
        self._offered[name] = tuple(cast("QuantizationFormat", each).from_source(source) for each in offered)

    def _unknown(self, stored: Stored, offered: list[QuantizationFormat]) -> ConfigError:
        known = self.methods()
        if offered:
            return NotStoredSoError(
                f"quant_method is {stored.method!r}, and no tensor is stored as {offered[0].name} stores them",
                expected="the tensors that belong to the config",
                hint=f"remove {SECTION} from the config if the weights are not quantized",
                field=f"{SECTION}.quant_method",
            )
        if self._problems:
            said = "; ".join(f"{name}: {why}" for name, why in self._problems.items())
            return ConfigError(
                f"the plugin for quant_method {stored.method!r} could not be used: {said}",
                expected="a plugin that imports",
                hint="reinstall or update it",
                field=f"{SECTION}.quant_method",
            )
        near = get_close_matches(stored.method or "", known, n=1)
        return ConfigError(
            f"no installed quantization format serves quant_method {stored.method!r}",
            expected=f"one of {', '.join(known)}",
            hint=(f"did you mean {near[0]}? " if near else "")
            + f"install a package that offers it (entry-point group {GROUP}, name {stored.method})",
            field=f"{SECTION}.quant_method",
        )


def _clash(seen: list[tuple[QuantizationFormat, str]]) -> PluginError:
    shown = "; ".join(f"{each.source}:{each.name} ({why})" for each, why in seen)
    return PluginError(
        f"{len(seen)} quantization formats know this checkpoint: {shown}",
        expected="one of them",
        hint="uninstall the other, or name the method in quantization_config.quant_method",
        field=SECTION,
    )
