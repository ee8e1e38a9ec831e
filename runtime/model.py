"""LoadedModel: a model ready to run, with all that is needed to save it as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import LoadReport, Plan, TensorSpec
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.plugins.architecture import Architecture
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.running.embedding import Embedder, open_embedder
from weightloom.runtime.tokenizing.tokenizer import Tokenizer

if TYPE_CHECKING:
    import mlx.nn as nn

    from weightloom.engine.quantizing.quantization import Quantization
    from weightloom.runtime.adapting.adapters import Adapters
    from weightloom.runtime.adapting.wish import Weighted
    from weightloom.runtime.adapting.writing import AdapterWritten, Form
    from weightloom.runtime.choosing.decision import Decision
    from weightloom.runtime.choosing.text_half import TextHalf
    from weightloom.runtime.loading.ranks import Share


@dataclass
class LoadedModel:
    """What `load` gives: the module, its config as read, the plan that mapped it, its tokenizer.

    `stored` is the parameters' specs as a save writes them: some are wider while they run. `folder` has the files
    beside the weights. `notes` says what was set aside: code that came along, a second chat template. `share` is what
    this process holds of a model that is cut among several, None where it has all. `opened` are the files that it was
    read from, `decision` what they were taken for and why, `cast` the dtype that it was cast to, as safetensors spells
    it, and `surgery` the file of what was done. `packed` are the modules that are packed, by path, where that is not as
    in the files; `vendor` those that came in a vendor's format, None where none did. `adapters` switches what is beside
    the parameters, None where nothing is, and `fused` are those that were fused into them. `half` says what is here
    where it is the text model alone of a checkpoint of several.
    """

    model: nn.Module
    config: Mapping[str, Any]
    architecture: Architecture
    plan: Plan
    path: Path
    folder: Path
    side_files: Callable[[], Mapping[str, bytes | Path]]
    stored: Mapping[str, TensorSpec] = field(repr=False)
    opened: Opened = field(repr=False)
    decision: Decision = field(repr=False)
    layout: str = "hf"
    tokenizer: Tokenizer | None = None
    notes: tuple[str, ...] = ()
    share: Share | None = None
    cast: str | None = None
    half: TextHalf | None = None
    surgery: Path | None = None
    packed: Mapping[str, Quantization] | None = None
    vendor: Mapping[str, Quantization] | None = None
    adapters: Adapters | None = None
    fused: tuple[Weighted, ...] = ()

    @property
    def altered(self) -> bool:
        """Whether its parameters are other than those in the files: cast, quantized, or changed by surgery."""
        return self.cast is not None or self.surgery is not None or self.packed is not None or bool(self.fused)

    @property
    def report(self) -> LoadReport:
        """What the plan found."""
        return self.plan.report

    @cached_property
    def embedder(self) -> Embedder:
        """How the files say that hidden states become an embedding; raises as `open_embedder` does."""
        return open_embedder(self.folder)

    @property
    def task(self) -> str:
        """What the model is for; what it was asked to do, where it does that by request."""
        asked = self.decision.evidence.kind
        by_request = asked.force == "asked" and asked.task in self.architecture.by_request
        return asked.task if by_request and asked.task is not None else self.architecture.task

    def need_tokenizer(self) -> Tokenizer:
        """Give the tokenizer; raises ConfigError, with what was looked for, where the checkpoint has none."""
        if self.tokenizer is None:
            from weightloom.runtime.tokenizing.vocabulary_search import LOOKED_FOR

            raise ConfigError(
                "this checkpoint has no tokenizer",
                expected=f"one of these beside the weights: {LOOKED_FOR}",
                hint="add the file; generate_ids (weightloom.runtime.running.generation) takes and gives ids",
                file=self.path,
            )
        return self.tokenizer

    def save(self, directory: str | Path, layout: str = "original", overwrite: bool = False) -> list[Path]:
        """Write the model: `original` as it was read, or a layout's name ("hf", ...).

        Raises as `Plan.save` does, and UsageError for an unknown layout, or a model with adapters beside it.
        """
        if self.adapters is not None:
            raise UsageError(
                "the model has adapters beside its parameters, which a checkpoint has no place for",
                expected="a model without adapters",
                hint="load it without them",
                field="adapter",
            )
        from weightloom.runtime.saving.saving import save

        return save(self, Path(directory), layout, overwrite)

    def save_adapter(
        self, directory: str | Path, name: str | None = None, form: Form = "original", overwrite: bool = False
    ) -> AdapterWritten:
        """Write one of its adapters, by default the only one: as it was read, or in the format "peft" or "mlx".

        Raises UsageError for a model without adapters, an unknown name or format, or a target that is not empty;
        NotInvertible and PlanError where the format has no place for it; CheckpointError and StorageError.
        """
        if self.adapters is None:
            raise UsageError("the model has no adapter", expected="a model that was loaded with one", field="adapter")
        from weightloom.runtime.adapting.saving_loaded import save_loaded

        return save_loaded(self, self.adapters.read(name), Path(directory), form, overwrite)
