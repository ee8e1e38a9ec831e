"""Subject: a sample with its checkpoint in a directory, the architecture that serves it, and a place for more files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime.configs.config import NAME, read_config
from weightloom.runtime.conformance.answering import answers
from weightloom.runtime.conformance.making import write_checkpoint
from weightloom.runtime.conformance.sample import Array, Sample
from weightloom.runtime.loading.loading import load
from weightloom.runtime.model import LoadedModel


@dataclass(frozen=True)
class Subject:
    """What the laws are held against. `written` are the parameters that the kit wrote; None where it wrote none."""

    sample: Sample
    architecture: Architecture
    folder: Path
    written: Mapping[str, mx.array] | None = field(repr=False)
    _places: Iterator[int] = field(default_factory=itertools.count, repr=False)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The content of the checkpoint's config.json, as a load reads it."""
        return read_config(self.folder / NAME).values

    @cached_property
    def loaded(self) -> LoadedModel:
        """The checkpoint as a user loads it, once for all laws: none of them changes it."""
        return load(self.folder)

    @cached_property
    def params(self) -> Mapping[str, mx.array]:
        """The parameters by the module's names: as written, or as loaded where the kit wrote none."""
        return parameters(self.loaded.model) if self.written is None else self.written

    @cached_property
    def answers(self) -> Array:
        """What is to be answered for `tokens()`: by the reference; without one, by the model, whole."""
        return self.answers_for(self.folder, self.sample.tokens())

    def answers_for(self, folder: Path, tokens: Array) -> Array:
        """Give what is to be answered by what a directory holds."""
        if self.sample.reference is not None:
            return self.sample.reference(folder, tokens)
        return answers((self.loaded if folder == self.folder else load(folder)).model, mx.array(tokens))

    def new_folder(self) -> Path:
        """Give the path of a directory that is not there yet."""
        return self.folder.parent / f"{self.folder.name}-{next(self._places)}"

    def tokens(self) -> mx.array:
        """Give the sample's tokens (2, length)."""
        return mx.array(self.sample.tokens())


def make_subject(sample: Sample, root: Path) -> Subject:
    """Write a sample's checkpoint into a directory below `root`, and find its architecture by the entry point."""
    folder = root / "checkpoint"
    if sample.checkpoint is None:
        architecture = architecture_of(sample.config)
        return Subject(sample, architecture, folder, write_checkpoint(sample, architecture, folder))
    folder.mkdir()
    sample.checkpoint(folder)
    return Subject(sample, architecture_of(read_config(folder / NAME).values), folder, None)


def architecture_of(config: Mapping[str, Any]) -> Architecture:
    """Give the one that names the config's class; where none does, the one for the model type."""
    manager, model_type = PluginManager(), str(config["model_type"])
    first = next(iter(config.get("architectures") or ()), None)
    named = [each for each in manager.architectures(model_type) if first in each.class_names]
    return named[0] if len(named) == 1 else manager.architecture(model_type)
