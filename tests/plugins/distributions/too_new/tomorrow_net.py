"""A plugin for an interface that this version does not have."""

from collections.abc import Iterable

from weightloom.plugins import Architecture, hookimpl


class Plugin:
    interface = 99

    @hookimpl
    def weightloom_architectures(self) -> Iterable[Architecture]:
        raise AssertionError("never asked")


PLUGIN = Plugin()
