"""A model of which modules are quantized: which they are, and what parameters they have, follows from the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weightloom.engine import Plan, RuleSet, TensorSpec
from weightloom.engine.errors import ConfigError
from weightloom.plugins.modules.binding import param_specs
from weightloom.runtime.choosing.text_choice import Reading
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.preparing.planner import Planner, planner_of
from weightloom.runtime.preparing.prepare import module_by

_SCALES = ("scales", "biases")


@dataclass
class PackedModel:
    """What is loaded, and how it is planned; the parameters last built are kept."""

    read: Reading
    planner: Planner
    _last: tuple[Mapping[str, TensorSpec], Mapping[str, TensorSpec]] | None = field(default=None, repr=False)

    def plan(self, rules: RuleSet) -> Plan:
        """Plan by rules as a load does; raises as planning does, ConfigError where the module cannot be built."""
        return self.planner.plan(rules, self.specs(rules), self.read.config)

    def specs(self, rules: RuleSet) -> Mapping[str, TensorSpec]:
        """Give the parameters that there are if these are the rules; built anew where other names come of them.

        Rules that lead a packed module to where none is say nothing of which are packed: then those last built stay.
        """
        try:
            return self._built(rules)
        except ConfigError:
            return self._last[1] if self._last is not None else self._built(self.read.rules)

    def _built(self, rules: RuleSet) -> Mapping[str, TensorSpec]:
        found = self.planner.plan(rules, config=self.read.config)
        if self._last is None or self._last[0] != found.params:
            module, _ = module_by(self.read, self.planner, found)
            self._last = found.params, param_specs(module)
        return self._last[1]

    @property
    def last(self) -> Mapping[str, TensorSpec] | None:
        """The parameters of the plan that was made last."""
        return None if self._last is None else self._last[1]


def packed_model(opened: Opened, read: Reading, layout: str) -> PackedModel | None:
    """Give how to plan what is quantized; None where nothing shows that anything is."""
    planner = planner_of(opened, layout)
    names = opened.checkpoint.logical
    packed = planner.unpacked is not None or any(name.endswith(_SCALES) for name in names)
    return PackedModel(read, planner) if packed else None
