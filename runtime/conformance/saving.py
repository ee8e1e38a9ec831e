"""What a save owes: the bytes that were read, in its own layout and back from every other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mlx.core as mx

from weightloom.engine import TensorSpec
from weightloom.engine.carrier import memory_of, spec_of
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.errors import NotInvertible
from weightloom.engine.mapping.claims import Absent
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.configs.config import find_config
from weightloom.runtime.conformance.comparing import (
    assert_same_arrays,
    assert_same_but_rounded,
    assert_same_weights,
    stored_arrays,
)
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load
from weightloom.runtime.opening.opening import GGUF
from weightloom.runtime.saving.order import CANONICAL


def published_names_are_written(subject: Subject) -> None:
    """A model that was never loaded is saved under the names that the sample says are published."""
    written = sorted(stored_arrays(subject.folder))
    lacking = sorted(set(subject.sample.published).difference(written))
    assert not lacking, (
        f"published are {lacking}, and a save writes {written}: rules are undone from the last to the first, "
        "so a wider rename belongs before one of a part of what it makes"
    )


def a_save_is_what_was_read(subject: Subject) -> None:
    """Loaded and saved, each weight file has the bytes that it had."""
    target = subject.new_folder()
    subject.loaded.save(target)
    assert_same_weights(target, subject.folder)


def the_inverse_of_the_inverse_is_the_plan(subject: Subject) -> None:
    """A plan that can be turned round says so, and turned round twice it is itself."""
    plan = subject.loaded.plan
    assert plan.invertible, f"there is no way back: {plan.report.lossy}"
    assert plan.inverse().inverse() == plan


def other_layouts_lead_back(subject: Subject) -> None:
    """Converted to each other layout of the family, it loads with the same parameters, and comes back byte for byte.

    Where the layout stores numbers that round, or has no room for some, these are kept beside it for the way back.
    """
    for layout in other_layouts(subject):
        there, back = subject.new_folder(), subject.new_folder()
        try:
            convert(subject.folder, Order(there, layout), Wish())
        except NotInvertible as error:
            assert error.rule, f"{layout} cannot be written, and no rule is named: {error}"
            continue
        same = assert_same_but_rounded if (there / KEPT_NAME).exists() else assert_same_arrays
        same(parameters(load(there).model), with_room(layout, subject))
        convert(there, Order(back, subject.sample.layout), Wish())
        assert _tensors(back) == _tensors(subject.folder), f"through {layout} and back, tensors differ"


def the_canonical_form_is_the_same(subject: Subject) -> None:
    """Written in the form that Transformers has, it loads with the same parameters."""
    target = subject.new_folder()
    convert(subject.folder, Order(target, CANONICAL), Wish())
    assert_same_arrays(parameters(load(target).model), subject.params)


def with_room(layout: str, subject: Subject) -> dict[str, mx.array]:
    """Give the parameters that a layout has room for."""
    choice = find_choice(find_config(subject.folder), Wish())
    absent = () if choice is None else [rule for rule in choice.rules_in(layout) if isinstance(rule, Absent)]
    return {name: array for name, array in subject.params.items() if not any(rule.selects(name) for rule in absent)}


def other_layouts(subject: Subject) -> Iterator[str]:
    """Give the layouts that the family has beside the sample's own; GGUF is read alone."""
    choice = find_choice(find_config(subject.folder), Wish())
    known = () if choice is None else choice.known
    yield from (layout for layout in known if layout not in (subject.sample.layout, GGUF))


def _tensors(folder: Path) -> dict[str, tuple[TensorSpec, bytes]]:
    return {name: (spec_of(array), bytes(memory_of(array))) for name, array in stored_arrays(folder).items()}
