"""Which modules of a checkpoint are quantized, and how: the file decides, module by module.

A module is quantized if its scales are there. Bits and group size follow from the shapes, the mode from biases; the
config is asked where they leave a choice, and what it says otherwise is noted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weightloom.engine import TensorSpec
from weightloom.engine.errors import ConfigError
from weightloom.engine.quantizing.inference import Parts, Stated, infer
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.show import listed
from weightloom.runtime.preparing.quantized_settings import Settings


@dataclass(frozen=True)
class QuantizedSet:
    """The quantization of each module that has one, by path, and in words what a config says otherwise."""

    modules: Mapping[str, Quantization]
    notes: tuple[str, ...] = ()


def quantized_set(params: Mapping[str, TensorSpec], settings: Settings, widths: Mapping[str, int]) -> QuantizedSet:
    """Find the modules that have scales among the (canonical) names; `widths` are those of a module's matrices.

    Raises ConfigError, with the arithmetic, for shapes that no quantization fits, and by name for scales without a
    weight, biases that do not go with the mode, or what the config says of one module and is not so.
    """
    found: dict[str, Quantization] = {}
    stated: dict[str, Stated] = {}
    for path, parts in _packed(params):
        stated[path] = settings.of(path)
        found[path] = infer(parts, stated[path], widths.get(path))
    return QuantizedSet(found, tuple(_notes(found, stated, settings)))


def _packed(params: Mapping[str, TensorSpec]) -> Iterator[tuple[str, Parts]]:
    """Give each path with its parts: a module with `weight`, or a stack with a name of its own."""
    for name in sorted(params):
        if name.endswith(".scales"):
            path = name.removesuffix(".scales")
            yield path, _parts(path, f"{path}.weight", f"{path}.biases", params)
        elif name.endswith("_scales") and name.removesuffix("_scales") in params:
            path = name.removesuffix("_scales")
            yield path, _parts(path, path, f"{path}_biases", params)


def _parts(path: str, weight: str, biases: str, params: Mapping[str, TensorSpec]) -> Parts:
    if weight not in params:
        raise ConfigError(
            f"{path} has scales and the weight (none)", expected="a packed weight of dtype U32", tensor=weight
        )
    scales = params[f"{path}.scales" if weight != path else f"{path}_scales"]
    own = params.get(biases)
    return Parts(path, params[weight].logical(), scales.logical(), None if own is None else own.logical())


def _notes(found: Mapping[str, Quantization], stated: Mapping[str, Stated], settings: Settings) -> Iterator[str]:
    """Say where the config is not right, many modules in a line."""
    otherwise: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, how in found.items():
        if not stated[path].agrees(how):
            otherwise[str(how), str(stated[path])].append(path)
    for (seen, said), paths in otherwise.items():
        yield f"{listed(paths, 3)} by the shapes: {seen}; the config says {said} of all"
    dense = [path for path in found if settings.kept_dense(path)]
    if dense:
        yield f"{listed(dense, 3)} quantized in the file, and not so by the config"
    beyond = list(settings.beyond(found))
    if beyond:
        yield f"{listed(beyond, 3)} quantized by the config, and in the file there are no scales: left as in the file"
