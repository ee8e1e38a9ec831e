"""What an architecture owes to quantized checkpoints: the answers of the matrices that the packed ones stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.modules.quantized import Packable
from weightloom.plugins.testing.comparing import as_numpy, assert_close, assert_same_weights
from weightloom.plugins.testing.making import built, write_arrays
from weightloom.plugins.testing.subject import Subject
from weightloom.runtime.loading.loading import load

BITS, GROUP = 4, 32
EXACT = 1e-4


def packed_answers_are_those_of_the_matrices(subject: Subject) -> None:
    """A checkpoint in 4 bits answers as the dense one whose matrices its words stand for, and saves as it was."""
    paths = tuple(packable(built(subject.architecture, subject.sample.config), subject.params))
    assert paths, f"no matrix has rows of a multiple of {GROUP}: let the sample's sizes be such"
    packed, dense = _write(subject, paths)
    m = load(packed)
    assert_close(as_numpy(m.model(subject.tokens())), as_numpy(load(dense).model(subject.tokens())), EXACT)
    target = subject.new_folder()
    m.save(target)
    assert_same_weights(target, packed)


def packable(module: nn.Module, params: Mapping[str, mx.array]) -> Iterator[str]:
    """Give the paths of matrices that can be packed: those of linear layers, embeddings and stacks of experts."""
    for path, each in module.named_modules():
        if isinstance(each, nn.Linear | nn.Embedding) and _divides(params.get(f"{path}.weight")):
            yield path
        elif isinstance(each, Packable):
            # A stack of matrices has three dims: its experts, and what any matrix has.
            own = (name for name in params if name.rpartition(".")[0] == path and params[name].ndim > 2)
            yield from (name for name in own if _divides(params[name]))


def _divides(array: mx.array | None) -> bool:
    return array is not None and array.shape[-1] % GROUP == 0


def _write(subject: Subject, paths: tuple[str, ...]) -> tuple[Path, Path]:
    """Write the checkpoint with these matrices packed, and with what the packed ones stand for."""
    packed, dense = dict(subject.params), dict(subject.params)
    for path in paths:
        name = path if path in packed else f"{path}.weight"
        stem = f"{path}_" if path in packed else f"{path}."
        words, scales, biases = mx.quantize(packed[name], GROUP, BITS)
        dense[name] = mx.dequantize(words, scales, biases, GROUP, BITS)
        packed |= {name: words, f"{stem}scales": scales, f"{stem}biases": biases}
    config, layout = subject.sample.config, _layout(subject)
    said = {**config, "quantization": {"group_size": GROUP, "bits": BITS}}
    places = subject.new_folder(), subject.new_folder()
    write_arrays(subject.architecture, said, layout, packed, places[0])
    write_arrays(subject.architecture, config, layout, dense, places[1])
    return places


def _layout(subject: Subject) -> str:
    from weightloom.plugins.testing.saving import other_layouts

    wanted = subject.sample.quantized_in
    return wanted if wanted in other_layouts(subject) else subject.sample.layout
