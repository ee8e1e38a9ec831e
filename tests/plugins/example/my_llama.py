"""My Llama: a Llama with scaled scores, published with blocks where others have layers."""

from collections.abc import Iterable
from dataclasses import dataclass

import mlx.core as mx

from weightloom.engine import RuleSet, WeightRenaming
from weightloom.plugins import Architecture, hookimpl
from weightloom.plugins.architectures import llama
from weightloom.plugins.configs import read
from weightloom.plugins.layers import CausalLM, DenseConfig


@dataclass(frozen=True)
class Fields:
    logit_scale: float = 1.0


@dataclass(frozen=True)
class Config:
    fields: Fields
    llama: DenseConfig


class MyLlama(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(llama.build(config.llama).model, tied=True)
        self.scale = config.fields.logit_scale

    def head(self, hidden: mx.array) -> mx.array:
        return super().head(hidden) * self.scale


MY_LLAMA = Architecture(
    name="my_llama",
    model_types=("my_llama",),
    task="generate",
    read_config=lambda content: Config(read(Fields, content), llama.read_llama(content)),
    build=MyLlama,
    rules=RuleSet([WeightRenaming(r"^net\.", "model."), WeightRenaming(r"^model\.blocks\.", "model.layers.")]),
    adapters="not tried with adapters yet",
)


class Plugin:
    @hookimpl
    def weightloom_architectures(self) -> Iterable[Architecture]:
        return [MY_LLAMA]


PLUGIN = Plugin()
