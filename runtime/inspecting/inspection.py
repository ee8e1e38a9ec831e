"""Inspection: what can be said of a checkpoint from its headers and its config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from weightloom.plugins.judging.fact import Fact
from weightloom.plugins.judging.vision import UNSAID
from weightloom.runtime.inspecting.memory_need import MemoryNeed
from weightloom.runtime.terminal.text import aligned, plural, size


@dataclass(frozen=True, slots=True)
class Template:
    """Tensors of one shape of name (numbers as `*` where there are several), dtype and shape; `nbytes` of all."""

    name: str
    count: int
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class FileSize:
    """One weight file: its path, and its length in bytes."""

    path: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Total:
    """How many tensors have a dtype, and their bytes."""

    dtype: str
    count: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class KeptBeside:
    """The file of kept tensors: its path, the layout and config of the source that it records, and what it keeps."""

    path: str
    source_layout: str
    source_files: tuple[str, ...]
    config: str
    tensors: tuple[str, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class LoadsAs:
    """What a load takes a checkpoint for: the architecture as `source:name`, its task, and the facts that decided.

    `refused` says why it would not load, where no architecture takes it.
    """

    architecture: str | None = None
    task: str | None = None
    facts: tuple[Fact, ...] = ()
    refused: str | None = None

    def rows(self) -> Iterator[tuple[str, str]]:
        """Give it as labelled lines; the model type and the towers (the last fact) have lines of their own."""
        if self.refused is not None:
            yield "loads as", f"nothing: {self.refused}"
        elif self.architecture is not None:
            yield "loads as", f"{self.architecture}, to {self.task}"
        others = (fact for fact in self.facts[:-1] if not fact.text.startswith("model_type "))
        yield from (("because", str(fact)) for fact in others)


@dataclass(frozen=True, slots=True)
class Inspection:
    """A checkpoint as its headers and config describe it; no tensor was read.

    `identifier` is the model type or class whose rules fit, None where none are known; `decided_by` says why, in
    words; `vision` says in the same way whether there is a vision tower. `layouts` are all that the rules know.
    `notes` has what is set aside (stray and shadowed tensors), `repaired` what of the config is read otherwise than it
    is written, `loads_as` what a load would take it for, and why.
    """

    path: str
    class_name: str | None
    model_type: str | None
    identifier: str | None
    decided_by: str
    layout: str | None
    layouts: tuple[str, ...]
    rule_files: tuple[str, ...]
    config: str | None
    quantization: str | None
    files: tuple[FileSize, ...]
    tensors: int
    nbytes: int
    dtypes: tuple[Total, ...]
    templates: tuple[Template, ...]
    metadata: Mapping[str, str]
    notes: tuple[str, ...]
    memory: MemoryNeed | None = None
    kept: KeptBeside | None = None
    vision: str | None = None
    repaired: tuple[str, ...] = ()
    loads_as: LoadsAs = LoadsAs()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def to_json(self) -> dict[str, Any]:
        """Give every field as JSON values, `"schema": 1`."""
        return {"schema": 1, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Give it as text: facts, files, dtypes, then the tensors by shape of name."""
        yield from aligned(self._facts())
        yield ""
        rows = [(t.name, f"x{t.count}", t.dtype, str(list(t.shape)), size(t.nbytes)) for t in self.templates]
        yield from aligned(rows, right=(1, 4))
        yield from (f"note: {note}" for note in self.notes)
        yield from (f"repaired: {repair}" for repair in self.repaired)

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "checkpoint", self.path
        yield "architecture", self._architecture()
        yield "decided by", self.decided_by
        yield from self.loads_as.rows()
        if self.vision not in (None, str(UNSAID)):
            yield "towers", str(self.vision)
        if self.layout is not None:
            yield "layout", self._layout()
        yield from (("rules", file) for file in self.rule_files)
        if self.quantization is not None:
            yield "quantization", self.quantization
        yield from (("file", f"{file.path} ({size(file.nbytes)})") for file in self.files)
        if self.kept is not None:
            about = f"{plural(len(self.kept.tensors), 'tensor')} of its {self.kept.source_layout} form"
            yield "kept", f"{self.kept.path} ({size(self.kept.nbytes)}): {about}, and its record"
        yield "tensors", f"{self.tensors:,} in {size(self.nbytes)}"
        yield from (("dtype", f"{t.dtype}: {plural(t.count, 'tensor')}, {size(t.nbytes)}") for t in self.dtypes)
        yield from (("metadata", f"{key} = {value}") for key, value in self.metadata.items())
        if self.memory is not None:
            yield from (("memory", line) for line in self.memory.lines())

    def _architecture(self) -> str:
        names = [name for name in (self.class_name, self.model_type) if name]
        return ", ".join(names) or "not said"

    def _layout(self) -> str:
        others = [name for name in self.layouts if name != self.layout]
        return f"{self.layout} (also known: {', '.join(others)})" if others else f"{self.layout} (the only one known)"
