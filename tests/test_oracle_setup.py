"""The references are the versions that the committed expectations were made with."""

from importlib.metadata import version

import pytest


@pytest.mark.oracle
@pytest.mark.sample
@pytest.mark.parametrize(("package", "release"), [("torch", "2.13."), ("transformers", "5.24."), ("peft", "0.21.")])
def test_the_reference_has_the_pinned_release(package: str, release: str) -> None:
    assert version(package).startswith(release)
