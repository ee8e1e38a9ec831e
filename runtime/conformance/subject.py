"""Subject: a sample with its checkpoint written, the architecture that serves it, and a place for more files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.runtime.conformance.making import write_checkpoint
from weightloom.runtime.conformance.sample import Sample
from weightloom.runtime.loading.loading import load
from weightloom.runtime.model import LoadedModel


@dataclass(frozen=True)
class Subject:
    """What the laws are held against. `params` are the parameters that were written, by the module's names."""

    sample: Sample
    architecture: Architecture
    folder: Path
    params: dict[str, mx.array] = field(repr=False)
    _places: Iterator[int] = field(default_factory=itertools.count, repr=False)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def model_type(self) -> str:
        """The sample's model type."""
        return self.sample.model_type

    def load(self) -> LoadedModel:
        """Load the checkpoint as a user does."""
        return load(self.folder)

    def new_folder(self) -> Path:
        """Give the path of a directory that is not there yet."""
        return self.folder.parent / f"{self.folder.name}-{next(self._places)}"

    def tokens(self) -> mx.array:
        """Give the sample's tokens (2, length)."""
        return mx.array(self.sample.tokens())


def make_subject(sample: Sample, root: Path, dtype: str = "F32") -> Subject:
    """Find the sample's architecture by its entry point, and write its checkpoint into a directory below `root`."""
    architecture = _architecture(sample)
    folder = root / "checkpoint"
    return Subject(sample, architecture, folder, write_checkpoint(sample, architecture, folder, dtype))


def _architecture(sample: Sample) -> Architecture:
    """Give the one that names the config's class; where none does, the one for the model type."""
    manager = PluginManager()
    first = next(iter(sample.config.get("architectures") or ()), None)
    named = [each for each in manager.architectures(sample.model_type) if first in each.class_names]
    return named[0] if len(named) == 1 else manager.architecture(sample.model_type)
