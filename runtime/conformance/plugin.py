"""The pytest plugin: runs each test of a Conformance class on each of its samples, and explains what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weightloom.runtime.conformance.subject import Subject

# Before the kit is imported: its asserts then show what they compared.
_KIT = ("comparing", "configs", "loading", "packed", "rulefiles", "running", "saving")
pytest.register_assert_rewrite(*(f"weightloom.runtime.conformance.{name}" for name in _KIT))

FIXTURE = "weightloom_subject"


@pytest.fixture(scope="class")
def weightloom_subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """Write a sample's checkpoint, once for all tests of a class."""
    from weightloom.runtime.conformance.subject import make_subject

    return make_subject(request.param, tmp_path_factory.mktemp("conformance"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a Conformance class once for each sample."""
    samples = getattr(metafunc.cls, "samples", None)
    if samples is None or FIXTURE not in metafunc.fixturenames:
        return
    from weightloom.runtime.conformance.suite import Conformance

    if metafunc.cls is not None and issubclass(metafunc.cls, Conformance):
        metafunc.parametrize(FIXTURE, samples, ids=[each.name for each in samples], indirect=True, scope="class")
