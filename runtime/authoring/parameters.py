"""Whose parameters an author's rules lead to: built once, and again only where names settle more than the config."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.modules.binding import param_specs
from weightloom.runtime.preparing.prepare import built


@dataclass
class Parameters:
    """The parameters of an architecture by a config; those last built are kept."""

    architecture: Architecture
    config: Mapping[str, Any]
    _last: tuple[Any, Mapping[str, TensorSpec]] | None = field(default=None, repr=False)

    @property
    def settled(self) -> bool:
        """Whether the config says all, so that no names are asked for."""
        return self.architecture.adapt is None

    def specs(self, names: Callable[[], Collection[str]]) -> Mapping[str, TensorSpec]:
        """Give them; `names` gives the canonical names that there are; raises ConfigError as building does."""
        if self.settled:
            return self._of(None, ())
        found = names()
        assert self.architecture.adapt is not None
        adapted = self.architecture.adapt(self.architecture.read_config(self.config), found)
        return self._of(adapted, found)

    def _of(self, adapted: Any, names: Collection[str]) -> Mapping[str, TensorSpec]:
        if self._last is None or self._last[0] != adapted:
            self._last = adapted, param_specs(built(self.architecture, self.config, names))
        return self._last[1]
