"""Whose parameters an author's rules lead to: built once, and again only where names settle more than the config."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.modules.binding import param_specs
from weightloom.plugins.modules.otherwise import known_otherwise
from weightloom.runtime.preparing.prepare import built

Names = Callable[[], Collection[str]]


@dataclass(frozen=True)
class Built:
    """A module's parameters, and what is known to be otherwise with them in other layouts."""

    specs: Mapping[str, TensorSpec]
    otherwise: Mapping[str, str]

    __hash__ = None  # type: ignore[assignment]  # it holds mappings


@dataclass
class Parameters:
    """The parameters of an architecture by a config; those last built are kept."""

    architecture: Architecture
    config: Mapping[str, Any]
    _last: tuple[Any, Built] | None = field(default=None, repr=False)

    def specs(self, names: Names) -> Mapping[str, TensorSpec]:
        """Give them; `names` gives the canonical names that there are; raises ConfigError as building does."""
        return self.built(names).specs

    def built(self, names: Names) -> Built:
        """Give them with what is known of them; names are asked for only where they settle it. Raises as `specs`."""
        if self.architecture.adapt is None:
            return self._of(None, ())
        found = names()
        return self._of(self.architecture.adapt(self.architecture.read_config(self.config), found), found)

    def _of(self, adapted: Any, names: Collection[str]) -> Built:
        if self._last is None or self._last[0] != adapted:
            module = built(self.architecture, self.config, names)
            self._last = adapted, Built(param_specs(module), known_otherwise(module))
        return self._last[1]
