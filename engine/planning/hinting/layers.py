"""Where the config and the file do not have the same layers, or layers share tensors that the file has for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from weightloom.engine.mapping.shapes import shape_text, shape_texts
from weightloom.engine.natural import natural
from weightloom.engine.planning.grouping import by_layer
from weightloom.engine.planning.report import LoadReport
from weightloom.engine.spec import TensorSpec

_SHOWN = 3
# Names by the layer that they are of.
Layers: TypeAlias = "Mapping[str, Sequence[str]]"


def layer_hints(report: LoadReport, params: Mapping[str, TensorSpec], config: Mapping[str, Any]) -> Iterator[str]:
    """Look at names whose shape of name others have too, only with other numbers."""
    counts = {field: value for field, value in _fields(config) if type(value) is int}
    layers = by_layer(name for name in params if "*" in shape_text(name))
    strange = by_layer(_alike(report.unexpected, params))
    beyond = {layer: names for layer, names in strange.items() if layer not in layers}
    if beyond:
        said = _counted(counts, next(iter(beyond)), layers)
        yield f"{_text(beyond)} are of layers that the model lacks: the config has fewer layers{said} than the file"
    within = {layer: names for layer, names in strange.items() if layer in layers}
    if within:
        said = "".join(f" ({field} = {value})" for field, value in counts.items() if "shared" in field and value)
        yield (
            f"{_text(within)} are parameters of other layers and not of these, which share the tensors of earlier "
            f"ones{said} or have fewer parts than the file: a `drop` rule leaves them out, and saves them back"
        )
    yield from _layers_lacking(report, layers, counts)


def _layers_lacking(
    report: LoadReport, layers: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> Iterator[str]:
    """Layers of which nothing at all is in the file, where others of their kind are."""
    missing = set(report.missing)
    bare = {layer: names for layer, names in layers.items() if missing.issuperset(names)}
    kinds = shape_texts(layer for layer in layers if layer not in bare)
    found = {layer: names for layer, names in bare.items() if shape_text(layer) in kinds}
    if found:
        said = _counted(counts, next(iter(found)), layers)
        yield f"{_text(found)} are in no file: the config has more layers{said} than the file"


def _alike(names: Sequence[str], params: Mapping[str, TensorSpec]) -> list[str]:
    numbered = [name for name in names if "*" in shape_text(name)]
    known = shape_texts(params) if numbered else ()
    return [name for name in numbered if shape_text(name) in known]


def _fields(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Give the fields of a config, those of its sections by their dotted names."""
    for name, value in config.items():
        if isinstance(value, Mapping) and not path:
            yield from _fields(value, f"{name}.")
        else:
            yield f"{path}{name}", value


def _counted(counts: Mapping[str, int], layer: str, layers: Layers) -> str:
    """Name the config's field that may count the layers of this one's kind."""
    count = sum(shape_text(each) == shape_text(layer) for each in layers)
    found = [field for field, value in counts.items() if "layers" in field and value == count]
    return f" ({found[0]} = {count})" if found else ""


def _text(layers: Layers) -> str:
    ordered = sorted(layers.items(), key=lambda item: natural(item[0]))
    shown = "; ".join(_layer_text(layer, names) for layer, names in ordered[:_SHOWN])
    more = f"; and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return f"{sum(map(len, layers.values()))} names ({shown}{more})"


def _layer_text(layer: str, names: Sequence[str]) -> str:
    parts = [name.removeprefix(f"{layer}.") for name in sorted(names)]
    shown = ", ".join(parts[:4])
    return f"{layer}: {shown}" if len(parts) <= 4 else f"{layer}: {shown}, ... ({len(parts)})"
