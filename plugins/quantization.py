"""QuantizationFormat: how a vendor stores quantized modules, offered by a plugin as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weightloom.engine import RuleSet, TensorSpec
from weightloom.engine.errors import PluginError
from weightloom.engine.planning.composing.unpacking import Packed
from weightloom.plugins.layers.packing import Quantization

SECTION = "quantization_config"


@dataclass(frozen=True)
class Stored:
    """What a checkpoint shows of itself before a tensor is read: its config's section, and all tensors' specs.

    `section` is quantization_config's content, {} where there is none; names are the file's.
    """

    section: Mapping[str, Any]
    specs: Mapping[str, TensorSpec]

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    @property
    def method(self) -> str | None:
        """The section's quant_method, in lower case; None where it has none."""
        found = self.section.get("quant_method")
        return found.lower() if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class PackedModule:
    """One quantized module, and how MLX has it: `how` None means as floats; `rounded`, that the numbers are others."""

    packed: Packed
    how: Quantization | None
    rounded: bool = False


@dataclass(frozen=True)
class Unpacking:
    """What a format makes of a checkpoint: its modules, rules that stand before the model's, and remarks."""

    modules: tuple[PackedModule, ...]
    rules: RuleSet = field(default_factory=RuleSet)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class QuantizationFormat:
    """A vendor's form of quantized modules.

    `methods` are the values of `quant_method` that it goes by. `detect` looks at a checkpoint and gives what shows
    that it is in this form, in words, or None; it is asked where the config names no method, too. `unpack` gives the
    modules, each with the rule that leads from the file's tensors to `weight`, `scales`, `biases` and `global_scale`
    under the file's names; with `dense` all become floats. It raises ConfigError for a section that it cannot
    carry out and PlanError, naming the tensor, for a module whose tensors do not belong together.
    """

    name: str
    methods: tuple[str, ...]
    detect: Callable[[Stored], str | None]
    unpack: Callable[[Stored, bool], Unpacking]
    source: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.methods:
            raise PluginError(
                f"quantization format {self.name!r} with methods {self.methods!r}",
                expected="a name, and one quant_method at least",
                field="methods",
            )

    def from_source(self, source: str) -> QuantizationFormat:
        """Give the same format with the name of the distribution that offers it."""
        return replace(self, source=source)
