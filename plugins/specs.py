"""Every extension point of weightloom, in one place. A plugin implements what it needs and nothing else.

A plugin states the version of these that it was written for: an attribute `interface` of the plugin object. One that
does not is taken to have been written for the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture
    from weightloom.plugins.quantization import QuantizationFormat

PROJECT = "weightloom"
# What a plugin's `interface` may say: the number grows with the hooks, their arguments and what they give.
INTERFACE = 1
# Hooks that go with the next interface, each with what to write instead; until then they work, with a warning.
DEPRECATED: dict[str, str] = {}

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Specs:
    """The hooks, each called at most once a load, before any tensor is read."""

    @hookspec
    def weightloom_architectures(self) -> Iterable[Architecture]:  # type: ignore[empty-body]
        """Offer the architectures that this plugin can build.

        Called when one of the plugin's entry points has the model type of the checkpoint at hand. Each judges the
        evidence of the checkpoint (`Architecture.refusal`, or its task, classes and sub-models). Two that take the
        same one are a clash: an error that names both, unless the caller chose one.
        """

    @hookspec
    def weightloom_formats(self) -> Iterable[QuantizationFormat]:  # type: ignore[empty-body]
        """Offer the forms of quantized modules that this plugin can read.

        Called when one of the plugin's entry points has the quant_method of the checkpoint at hand, or when its
        config names none. Two formats that know one checkpoint are a clash: an error that names both.
        """
