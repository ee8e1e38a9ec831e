"""The everyday door: load, run, save, inspect and convert checkpoints, from Python and from the command line.

The names below are imported on first use.
"""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.runtime.adapting.losses import LossPolicy as LossPolicy
    from weightloom.runtime.adapting.wish import Fusing as Fusing
    from weightloom.runtime.converting.adapter_conversion import convert_adapter as convert_adapter
    from weightloom.runtime.inspecting.inspecting import inspect as inspect
    from weightloom.runtime.inspecting.inspection import Inspection as Inspection
    from weightloom.runtime.loading.loading import load as load
    from weightloom.runtime.model import LoadedModel as LoadedModel
    from weightloom.runtime.running.embedding import embed as embed
    from weightloom.runtime.running.generation import generate as generate
    from weightloom.runtime.running.generation import generate_batch as generate_batch
    from weightloom.runtime.running.reranking import rerank as rerank
    from weightloom.runtime.saving.saving import save as save

_HOME = {
    "Fusing": "adapting.wish",
    "Inspection": "inspecting.inspection",
    "LoadedModel": "model",
    "LossPolicy": "adapting.losses",
    "convert_adapter": "converting.adapter_conversion",
    "embed": "running.embedding",
    "generate": "running.generation",
    "generate_batch": "running.generation",
    "inspect": "inspecting.inspecting",
    "load": "loading.loading",
    "rerank": "running.reranking",
    "save": "saving.saving",
}

__all__ = [
    "Fusing",
    "Inspection",
    "LoadedModel",
    "LossPolicy",
    "convert_adapter",
    "embed",
    "generate",
    "generate_batch",
    "inspect",
    "load",
    "rerank",
    "save",
]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _HOME)

    def __dir__() -> list[str]:
        return __all__
