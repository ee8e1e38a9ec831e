"""The pytest plugin: runs each law on each sample of a Conformance class, explains what fails, and says the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weightloom.runtime.conformance.subject import Subject

# Before the kit is imported: its asserts then show what they compared.
_KIT = ("comparing", "configs", "loading", "packed", "rulefiles", "running", "saving", "spelling")
pytest.register_assert_rewrite(*(f"weightloom.runtime.conformance.{name}" for name in _KIT))

FIXTURE, LAW = "weightloom_subject", "law"
OPTION = "--differences"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for the numbers."""
    about = "the largest differences that weightloom's conformance kit measured, a row a sample"
    parser.getgroup("weightloom").addoption(OPTION, action="store_true", help=about)


@pytest.fixture(scope="class")
def weightloom_subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """Write a sample's checkpoint, once for all tests of a class."""
    from weightloom.runtime.conformance.subject import make_subject

    return make_subject(request.param, tmp_path_factory.mktemp("conformance"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a Conformance class once for each sample, and `test_law` for each of its laws too."""
    samples = getattr(metafunc.cls, "samples", None)
    if samples is None or FIXTURE not in metafunc.fixturenames:
        return
    from weightloom.runtime.conformance.suite import Conformance

    if metafunc.cls is not None and issubclass(metafunc.cls, Conformance):
        metafunc.parametrize(FIXTURE, samples, ids=[each.name for each in samples], indirect=True, scope="class")
        if LAW in metafunc.fixturenames:
            metafunc.parametrize(LAW, metafunc.cls.laws, ids=[law.name for law in metafunc.cls.laws])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write a row of differences for each sample that was measured."""
    if not terminalreporter.config.getoption(OPTION):
        return
    from weightloom.runtime.conformance.verdict import head, measured_samples

    reports = ((each.nodeid, each.user_properties) for each in terminalreporter.getreports("passed"))
    terminalreporter.section("largest differences")
    for line in (head(), *map(str, measured_samples(reports))):
        terminalreporter.write_line(line)
