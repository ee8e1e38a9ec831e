"""Finding quantization formats: entry points by quant_method, ours by the same door, only what is needed imported.

Entry-point group `weightloom.formats`; the entry point's name is the quant_method, its value `module:OBJECT`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import cast

import pluggy

from weightloom.engine.errors import ConfigError, PluginError
from weightloom.plugins.quantization import SECTION, QuantizationFormat, Stored
from weightloom.plugins.specs import PROJECT, Specs

GROUP = "weightloom.formats"


class FormatManager:
    """The quantization formats that are installed, and those registered here."""

    def __init__(self, group: str = GROUP) -> None:
        self._group = group
        self._hooks = pluggy.PluginManager(PROJECT)
        self._hooks.add_hookspecs(Specs)
        self._offered: dict[str, tuple[QuantizationFormat, ...]] = {}

    def register(self, plugin: object, name: str | None = None) -> None:
        """Use a plugin object without an entry point; raises PluginError for one that offers no formats."""
        self._register(plugin, name or type(plugin).__module__)

    def methods(self) -> tuple[str, ...]:
        """List the values of quant_method that are served; imports nothing."""
        registered = (method for offered in self._offered.values() for each in offered for method in each.methods)
        return tuple(sorted({*(point.name for point in entry_points(group=self._group)), *registered}))

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
        points = entry_points(group=self._group) if method is None else entry_points(group=self._group, name=method)
        for value in {point.value: point for point in points}.values():
            self._load_point(value)

    def _load_point(self, point: EntryPoint) -> None:
        name = f"{point.dist.name if point.dist else '?'} {point.value}"
        if name not in self._offered:
            self._register(point.load(), name)

    def _register(self, plugin: object, name: str) -> None:
        try:
            self._hooks.register(plugin, name)
            self._hooks.check_pending()
        except pluggy.PluginValidationError as error:
            raise PluginError(f"plugin {name}: {error}", expected="the hook weightloom_formats") from error
        calls = [each for each in self._hooks.hook.weightloom_formats.get_hookimpls() if each.plugin is plugin]
        offered = [one for each in calls for one in cast("Iterable[object]", each.function())]
        wrong = [each for each in offered if not isinstance(each, QuantizationFormat)]
        if wrong or not offered:
            raise PluginError(
                f"plugin {name} offers {wrong[0] if wrong else 'nothing'!r}", expected="quantization formats"
            )
        source = name.partition(" ")[0]
        self._offered[name] = tuple(cast("QuantizationFormat", each).from_source(source) for each in offered)

    def _unknown(self, stored: Stored, offered: list[QuantizationFormat]) -> ConfigError:
        known = self.methods()
        if offered:
            return ConfigError(
                f"quant_method is {stored.method!r}, and no tensor is stored as {offered[0].name} stores them",
                expected="the tensors that belong to the config",
                hint=f"remove {SECTION} from the config if the weights are not quantized",
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
