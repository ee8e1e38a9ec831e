"""Conformance: the laws as tests. A subclass names its samples, and each law is tested on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from weightloom.runtime.conformance import configs
from weightloom.runtime.conformance.laws import LAWS, Law
from weightloom.runtime.conformance.sample import Sample
from weightloom.runtime.conformance.subject import Subject


class Conformance:
    """What an architecture must hold. Give `samples`: two at least, the second with the family's odd options on."""

    samples: ClassVar[tuple[Sample, ...]] = ()
    laws: ClassVar[tuple[Law, ...]] = LAWS

    def __init_subclass__(cls) -> None:
        names = [sample.name for sample in cls.samples]
        if len(set(names)) != len(names):
            raise ValueError(f"{cls.__name__}: samples need names of their own, and these are {names}")

    @pytest.fixture
    def subject(self, weightloom_subject: Subject) -> Subject:
        """Give a sample with its checkpoint, which all tests of the class share."""
        return weightloom_subject

    def test_law(self, subject: Subject, law: Law, record_property: Callable[[str, object], None]) -> None:
        """Hold a sample to a law; what is measured goes into the report."""
        if law.spares(subject):
            pytest.skip(law.why)
        found = law.check(subject)
        if law.measures:
            record_property(law.measures, found)

    def test_every_sharding_pattern_cuts_something(self, subject: Subject) -> None:
        """See `configs.sharding_cuts_something`."""
        configs.sharding_cuts_something(subject.architecture, self.samples)
