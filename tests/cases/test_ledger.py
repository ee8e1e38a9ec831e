"""Every published failure that is said to be answered has a test that carries its number."""

from __future__ import annotations

from tests.cases.ledger import coverings, listed


def test_every_case_is_listed_once() -> None:
    done, under_way = listed()["done"], listed()["open"]
    assert sorted([*done, *under_way]) == [f"C{number:02}" for number in range(1, 86)]


def test_every_case_that_is_done_has_a_test_in_every_run() -> None:
    covered = {found.case for found in coverings() if found.plain}
    assert not {case: line for case, line in listed()["done"].items() if case not in covered}


def test_no_test_carries_a_number_that_is_no_case() -> None:
    known = {case for cases in listed().values() for case in cases}
    assert not [found for found in coverings() if found.case not in known]
