"""A second plugin for a model type that another package serves."""

from collections.abc import Iterable

from weightloom.plugins import Architecture, hookimpl
from weightloom.plugins.architectures import llama

OTHER = Architecture(
    name="other_llama",
    model_types=("my_llama",),
    task="generate",
    read_config=llama.read_llama,
    build=llama.build,
    adapters="none",
)


class Plugin:
    @hookimpl
    def weightloom_architectures(self) -> Iterable[Architecture]:
        return [OTHER]


PLUGIN = Plugin()
