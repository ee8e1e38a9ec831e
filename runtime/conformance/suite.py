"""Conformance: the laws as tests. A subclass names its samples, and each test runs on each of them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from weightloom.runtime.conformance import configs, loading, packed, running, saving
from weightloom.runtime.conformance.rulefiles import nothing_is_found
from weightloom.runtime.conformance.sample import Sample
from weightloom.runtime.conformance.subject import Subject


class Conformance:
    """What an architecture must hold. Give `samples`: two at least, the second with the family's odd options on."""

    samples: ClassVar[tuple[Sample, ...]] = ()

    def __init_subclass__(cls) -> None:
        names = [sample.name for sample in cls.samples]
        if len(set(names)) != len(names):
            raise ValueError(f"{cls.__name__}: samples need names of their own, and these are {names}")

    @pytest.fixture
    def subject(self, weightloom_subject: Subject) -> Subject:
        """Give a sample with its checkpoint, which all tests of the class share."""
        return weightloom_subject

    def test_it_is_found_by_every_model_type(self, subject: Subject) -> None:
        """See `configs.is_found_by_every_model_type`."""
        configs.is_found_by_every_model_type(subject)

    def test_every_wrong_field_is_named(self, subject: Subject) -> None:
        """See `configs.every_wrong_field_is_named`."""
        configs.every_wrong_field_is_named(subject)

    def test_every_sharding_pattern_cuts_something(self, subject: Subject) -> None:
        """See `configs.sharding_cuts_something`."""
        configs.sharding_cuts_something(subject.architecture, self.samples)

    def test_the_linter_finds_nothing(self, subject: Subject) -> None:
        """See `rulefiles.nothing_is_found`."""
        nothing_is_found(subject)

    def test_parameters_are_as_written(self, subject: Subject) -> None:
        """See `loading.parameters_are_as_written`."""
        loading.parameters_are_as_written(subject)

    def test_inference_is_exact(self, subject: Subject) -> None:
        """See `loading.inference_is_exact`."""
        loading.inference_is_exact(subject)

    def test_lazy_is_eager(self, subject: Subject) -> None:
        """See `loading.lazy_is_eager`."""
        loading.lazy_is_eager(subject)

    def test_shards_add_up(self, subject: Subject) -> None:
        """See `loading.shards_add_up`."""
        if not subject.architecture.sharding:
            pytest.skip("it has no sharding plan")
        loading.shards_add_up(subject)

    def test_a_lacking_tensor_is_named(self, subject: Subject) -> None:
        """See `loading.a_lacking_tensor_is_named`."""
        loading.a_lacking_tensor_is_named(subject)

    def test_a_stranger_is_named(self, subject: Subject) -> None:
        """See `loading.a_stranger_is_named`."""
        loading.a_stranger_is_named(subject)

    def test_a_wrong_shape_is_named(self, subject: Subject) -> None:
        """See `loading.a_wrong_shape_is_named`."""
        loading.a_wrong_shape_is_named(subject)

    def test_published_names_are_written(self, subject: Subject) -> None:
        """See `saving.published_names_are_written`."""
        if not subject.sample.published:
            pytest.skip("the sample says no published names")
        saving.published_names_are_written(subject)

    def test_a_save_is_what_was_read(self, subject: Subject) -> None:
        """See `saving.a_save_is_what_was_read`."""
        saving.a_save_is_what_was_read(subject)

    def test_the_inverse_of_the_inverse_is_the_plan(self, subject: Subject) -> None:
        """See `saving.the_inverse_of_the_inverse_is_the_plan`."""
        saving.the_inverse_of_the_inverse_is_the_plan(subject)

    def test_other_layouts_lead_back(self, subject: Subject) -> None:
        """See `saving.other_layouts_lead_back`."""
        saving.other_layouts_lead_back(subject)

    def test_the_reference_agrees(self, subject: Subject) -> None:
        """See `running.the_reference_agrees`."""
        if subject.sample.reference is None:
            pytest.skip("the sample has no reference")
        running.the_reference_agrees(subject)

    def test_rows_do_not_see_each_other(self, subject: Subject) -> None:
        """See `running.rows_do_not_see_each_other`."""
        running.rows_do_not_see_each_other(subject)

    def test_the_dtype_is_kept(self, subject: Subject) -> None:
        """See `running.the_dtype_is_kept`."""
        running.the_dtype_is_kept(subject)

    def test_packed_answers_are_those_of_the_matrices(self, subject: Subject) -> None:
        """See `packed.packed_answers_are_those_of_the_matrices`."""
        packed.packed_answers_are_those_of_the_matrices(subject)

    def test_the_cache_changes_nothing(self, subject: Subject) -> None:
        """See `running.the_cache_changes_nothing`."""
        _only_for(("generate",), subject)
        running.the_cache_changes_nothing(subject)

    def test_padding_in_front_changes_nothing(self, subject: Subject) -> None:
        """See `running.padding_in_front_changes_nothing`."""
        _only_for(("generate",), subject)
        running.padding_in_front_changes_nothing(subject)

    def test_later_tokens_change_nothing(self, subject: Subject) -> None:
        """See `running.later_tokens_change_nothing`."""
        _only_for(("generate",), subject)
        running.later_tokens_change_nothing(subject)

    def test_padding_changes_nothing(self, subject: Subject) -> None:
        """See `running.padding_changes_nothing`."""
        _only_for(("embed", "rerank"), subject)
        running.padding_changes_nothing(subject)


def _only_for(tasks: tuple[str, ...], subject: Subject) -> None:
    if subject.architecture.task not in tasks:
        pytest.skip(f"its task is {subject.architecture.task}")
