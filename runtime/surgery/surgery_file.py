"""Surgery files: YAML, version 1, read with places; every problem is collected and raised once.

    version: 1
    operations:
    - {op: scale, pattern: '**.o_proj.weight', factor: 0.9}
    - {op: add, pattern: '**.down_proj.weight', source: task.safetensors, alpha: 0.5}
    - {op: replace, pattern: 'model.norm.weight', source: other, source_key: 'model.norm.weight'}
    - {op: interpolate, pattern: '**', source_a: one, source_b: other, ratio: 0.3, method: slerp}

    - {op: prune, granularity: attention_head, pattern: '**.self_attn.**', head_ids: [2, 5]}

Each but `prune` takes `side: file` for the names in the files in the place of the parameters'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.mapping.rule import Place
from weightloom.engine.surgery import Add, Donor, Interpolate, Operation, Replace, Scale
from weightloom.engine.surgery.blending import Lerped, Slerped
from weightloom.engine.surgery.operation import Side
from weightloom.rules.nodes import List, Node, Scalar, Table, plain, show
from weightloom.rules.parse import read_bytes
from weightloom.rules.problems import Problems
from weightloom.rules.reading import choice, fields
from weightloom.rules.yaml_text import read_yaml
from weightloom.runtime.surgery.surgery_pruning import PRUNE, read_pruning
from weightloom.runtime.surgery.surgery_reader import SurgeryReader

VERSION = 1
MAX_OPERATIONS = 1000
_METHODS = {"lerp": Lerped, "slerp": Slerped}
FindDonor = Callable[[Path, Side], Donor]
Make = Callable[[FindDonor], Operation]


@dataclass(frozen=True, slots=True)
class SurgeryFile:
    """What a surgery file asks for; each operation is made once its donors can be opened. What prunes comes last."""

    path: Path
    operations: tuple[Make, ...]
    prunings: tuple[Operation, ...] = ()

    def changed(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the config of what is left; raises ConfigError for one that does not say enough."""
        for pruning in self.prunings:
            config = pruning.changed(config)
        return config


def read_surgery(path: Path) -> SurgeryFile:
    """Read a surgery file. Raises RuleFileError with all its problems, StorageError where it cannot be read."""
    problems = Problems(str(path))
    root = fields(read_yaml(read_bytes(path), problems), "the file", problems, required=("version", "operations"))
    _check_version(root.get("version"), problems)
    read = SurgeryReader(path, problems)
    items = _items(root.get("operations"), problems)
    at = next((number for number, node in enumerate(items) if _op(node) == PRUNE), len(items))
    made = [_operation(node, read) for node in items[:at]]
    prunings = [read_pruning(node, path, problems) for node in items[at:]]
    problems.check()
    given = tuple(each for each in made if each is not None)
    return SurgeryFile(path, given, tuple(each for each in prunings if each is not None))


def _op(node: Node) -> object:
    entries = node.entries if isinstance(node, Table) else ()
    return next((plain(entry.value) for entry in entries if entry.key == "op"), None)


def _check_version(node: Node | None, problems: Problems) -> None:
    if node is not None and not (isinstance(node, Scalar) and node.value == VERSION and node.value is not True):
        problems.add(node.at, f"version is {show(node)}", expected=f"version: {VERSION}", field="version")


def _items(node: Node | None, problems: Problems) -> tuple[Node, ...]:
    if node is None:
        return ()
    if isinstance(node, List) and 0 < len(node.items) <= MAX_OPERATIONS:
        return node.items
    size = f"a list of {len(node.items)}" if isinstance(node, List) else show(node)
    problems.add(node.at, f"operations is {size}", expected=f"a list of 1 to {MAX_OPERATIONS}", field="operations")
    return ()


def _operation(node: Node, read: SurgeryReader) -> Make | None:
    problems = read.problems
    if not isinstance(node, Table):
        problems.add(node.at, f"an operation is {show(node)}", expected=f"a mapping with op: {_OPS}")
        return None
    given = next((entry.value for entry in node.entries if entry.key == "op"), None)
    if given is None:
        problems.add(node.at, "an operation lacks 'op'", expected=f"op: {_OPS}", field="op")
        return None
    op = choice(given, "op", problems, (*_FORMS, PRUNE))
    if op not in _FORMS:
        return None
    form = _FORMS[op]
    found = fields(
        node, f"a {op}", problems, required=("op", "pattern", *form.required), optional=("side", *form.optional)
    )
    place = Place(f"{read.path}:{node.at.line}", node.at.column)
    return form.make(found, read, place)


def _scale(found: Mapping[str, Node], read: SurgeryReader, place: Place) -> Make:
    pattern, side = read.glob(found.get("pattern"), "pattern"), read.side(found.get("side"))
    factor = read.number(found.get("factor"), "factor", 1.0)
    made = Scale(pattern, side=side, place=place, factor=factor)
    return lambda donor: made


def _add(found: Mapping[str, Node], read: SurgeryReader, place: Place) -> Make:
    pattern, side = read.glob(found.get("pattern"), "pattern"), read.side(found.get("side"))
    alpha, source = read.number(found.get("alpha"), "alpha", 1.0), read.source(found.get("source"), "source")
    return lambda donor: Add(pattern, donor(source, side), alpha, side=side, place=place)


def _replace(found: Mapping[str, Node], read: SurgeryReader, place: Place) -> Make:
    pattern, side = read.glob(found.get("pattern"), "pattern"), read.side(found.get("side"))
    key = read.glob(found["source_key"], "source_key") if "source_key" in found else pattern
    if key.stars != pattern.stars:
        said = f"source_key has the stars {' '.join(key.stars) or 'none'}"
        read.problems.add(
            found["source_key"].at, said, expected=f"those of pattern: {' '.join(pattern.stars) or 'none'}"
        )
    source = read.source(found.get("source"), "source")
    return lambda donor: Replace(pattern, donor(source, side), key, side=side, place=place)


def _interpolate(found: Mapping[str, Node], read: SurgeryReader, place: Place) -> Make:
    pattern, side = read.glob(found.get("pattern"), "pattern"), read.side(found.get("side"))
    ratio = read.number(found.get("ratio"), "ratio", 0.5, most=1.0, least=0.0)
    step = _METHODS.get(choice(found.get("method"), "method", read.problems, tuple(_METHODS)) or "", Slerped)
    first = read.source(found["source_a"], "source_a") if "source_a" in found else None
    second = read.source(found.get("source_b"), "source_b")

    def make(donor: FindDonor) -> Operation:
        one = None if first is None else donor(first, side)
        return Interpolate(pattern, one, donor(second, side), ratio, step, side=side, place=place)

    return make


@dataclass(frozen=True, slots=True)
class _Form:
    """The keys of an operation beside `op`, `pattern` and `side`, and what reads them."""

    make: Callable[[Mapping[str, Node], SurgeryReader, Place], Make]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_FORMS = {
    "scale": _Form(_scale, ("factor",)),
    "add": _Form(_add, ("source",), ("alpha",)),
    "replace": _Form(_replace, ("source",), ("source_key",)),
    "interpolate": _Form(_interpolate, ("source_b", "ratio", "method"), ("source_a",)),
}
_OPS = ", ".join((*_FORMS, PRUNE))
