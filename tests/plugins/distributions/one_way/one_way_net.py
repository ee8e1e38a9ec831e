"""A plugin with a rule that has no way back: such a checkpoint loads, and cannot be saved as it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weightloom.engine import ConversionOp, RuleSet, WeightConverter
from weightloom.engine.ops.base import relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.plugins import Architecture, hookimpl
from weightloom.plugins.architectures import llama


@dataclass(frozen=True, slots=True)
class Forgetful(ConversionOp):
    def lower(self, chain: Chain) -> None:
        relabel_single(chain)


NET = Architecture(
    name="one_way_net",
    model_types=("one_way_net",),
    task="generate",
    read_config=llama.read_llama,
    build=llama.build,
    rules=RuleSet([WeightConverter("net.weight", "model.norm.weight", [Forgetful()])]),
    adapters="none",
)


class Plugin:
    interface = 1

    @hookimpl
    def weightloom_architectures(self) -> Iterable[Architecture]:
        return [NET]


PLUGIN = Plugin()
