"""Every extension point of weightloom, in one place. A plugin implements what it needs and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture

PROJECT = "weightloom"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Specs:
    """The hooks, each called at most once a load, before any tensor is read."""

    @hookspec
    def weightloom_architectures(self) -> Iterable[Architecture]:  # type: ignore[empty-body]
        """Offer the architectures that this plugin can build.

        Called when one of the plugin's entry points has the model type of the checkpoint at hand. Two plugins
        that offer one model type are a clash: an error that names both, unless the caller chose one.
        """
