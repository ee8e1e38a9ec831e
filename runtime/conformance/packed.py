"""What an architecture owes to quantized checkpoints: the answers of the matrices that the packed ones stand for."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx

from weightloom.engine.quantizing.quantization import part_names
from weightloom.plugins.modules.quantized import widths
from weightloom.runtime.conformance.comparing import as_numpy, assert_close, assert_same_weights
from weightloom.runtime.conformance.making import built, write_arrays
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.loading.loading import load

BITS, GROUP = 4, 32
EXACT = 1e-4


def packed_answers_are_those_of_the_matrices(subject: Subject) -> None:
    """A checkpoint in 4 bits answers as the dense one whose matrices its words stand for, and saves as it was."""
    found = widths(built(subject.architecture, subject.sample.config))
    paths = tuple(path for path, columns in found.items() if columns % GROUP == 0)
    assert paths, f"no matrix has rows of a multiple of {GROUP}: let the sample's sizes be such"
    packed, dense = _write(subject, paths)
    m = load(packed)
    assert_close(as_numpy(m.model(subject.tokens())), as_numpy(load(dense).model(subject.tokens())), EXACT)
    target = subject.new_folder()
    m.save(target)
    assert_same_weights(target, packed)


def _write(subject: Subject, paths: tuple[str, ...]) -> tuple[Path, Path]:
    """Write the checkpoint with these matrices packed, and with what the packed ones stand for."""
    packed, dense = dict(subject.params), dict(subject.params)
    for path in paths:
        name = path if path in packed else f"{path}.weight"
        parts = mx.quantize(packed[name], GROUP, BITS)
        dense[name] = mx.dequantize(*parts, GROUP, BITS)
        packed |= dict(zip(part_names(name), parts, strict=True))
    config, layout = subject.sample.config, _layout(subject)
    said = {**config, "quantization": {"group_size": GROUP, "bits": BITS}}
    places = subject.new_folder(), subject.new_folder()
    write_arrays(subject.architecture, said, layout, packed, places[0])
    write_arrays(subject.architecture, config, layout, dense, places[1])
    return places


def _layout(subject: Subject) -> str:
    from weightloom.runtime.conformance.saving import other_layouts

    wanted = subject.sample.quantized_in
    return wanted if wanted in other_layouts(subject) else subject.sample.layout
