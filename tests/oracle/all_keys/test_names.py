"""Every key's names, without its models."""

from __future__ import annotations

import pytest

from tests.oracle.all_keys.name_check import differences, keys, unwritten

pytestmark = [pytest.mark.oracle, pytest.mark.sample, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("key", keys())
def test_names_go_where_the_reference_sends_them_and_back(key: str) -> None:
    assert list(differences(key)) == []
    assert list(unwritten(key)) == []
