"""What an architecture owes to quantized checkpoints: the answers of the matrices that the packed ones stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mlx.core as mx

from weightloom.engine.quantizing.quantization import Quantization, part_names
from weightloom.engine.quantizing.recipe import ModuleRule, Recipe
from weightloom.engine.surgery.glob import Glob
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.quantized import widths
from weightloom.runtime.conformance.answering import answers
from weightloom.runtime.conformance.comparing import assert_close, assert_same_arrays, assert_same_weights
from weightloom.runtime.conformance.making import built, write_arrays
from weightloom.runtime.conformance.saving import other_layouts, with_room
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.loading.loading import load

BITS, GROUP = 4, 32
RECIPE = Recipe("four bits", (ModuleRule((Glob("**"),), Quantization(BITS, GROUP)),))


@dataclass(frozen=True)
class Packed:
    """All matrices whose rows divide in 4 bits: the parameters, and what they stand for."""

    words: Mapping[str, mx.array]
    dense: Mapping[str, mx.array]


def packed_answers_are_those_of_the_matrices(subject: Subject) -> float:
    """A checkpoint in 4 bits answers as the dense one whose matrices its words stand for, and saves as it was."""
    found, config, target = _packed(subject), subject.config, subject.new_folder()
    said = {**config, "quantization": {"group_size": GROUP, "bits": BITS}}
    packed, dense = subject.new_folder(), subject.new_folder()
    layouts = _layouts(subject)
    write_arrays(subject.architecture, said, layouts[0], found.words, packed)
    write_arrays(subject.architecture, config, layouts[1], found.dense, dense)
    m = load(packed)
    m.save(target)
    assert_same_weights(target, packed)
    wanted = subject.answers_for(dense, subject.sample.tokens())
    return assert_close(answers(m.model, subject.tokens()), wanted, subject.sample.tolerance)


def packing_on_load_packs_the_same(subject: Subject) -> None:
    """What is packed while it is read has the words that its parameters have when MLX packs them."""
    m = load(subject.folder, quantize=RECIPE)
    assert_same_arrays(parameters(m.model), _packed(subject).words)


def _packed(subject: Subject) -> Packed:
    """Pack what can be packed, by MLX's own function."""
    columns = widths(built(subject.architecture, subject.config))
    paths = [path for path, count in columns.items() if count % GROUP == 0]
    assert paths, f"no matrix has rows of a multiple of {GROUP}: let the sample's sizes be such"
    words, dense = dict(subject.params), dict(subject.params)
    for path in paths:
        name = path if path in subject.params else f"{path}.weight"
        parts = mx.quantize(subject.params[name], GROUP, BITS)
        dense[name] = mx.dequantize(*parts, GROUP, BITS)
        words |= dict(zip(part_names(name), parts, strict=True))
    return Packed(words, dense)


def _layouts(subject: Subject) -> tuple[str, str]:
    """Give the layouts of what is packed and of what is dense.

    A reference reads the sample's own, and counts all parameters: it cannot be asked about a layout that lacks some.
    """
    own, wanted = subject.sample.layout, subject.sample.quantized_in
    known = wanted if wanted in other_layouts(subject) else own
    if subject.sample.reference is None:
        return known, known
    return (known if len(with_room(known, subject)) == len(subject.params) else own), own
