"""Names, templates and boxes: every name is spelt by its template, and boxes hold the rows that they were made from."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.runtime.picture.boxes import boxes, runs
from weightloom.runtime.picture.picture import Box, Run
from weightloom.runtime.picture.spelling import spelt

NAMES = st.text("ab.019_", min_size=0, max_size=12)


@given(st.sets(NAMES, max_size=20))
def test_a_spelling_is_the_name(names: set[str]) -> None:
    found = spelt(names)
    assert found.keys() == names
    assert {str(spelling) for spelling in found.values()} == names


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["h.0.w", "h.12.w"], ("h.", ".w")),
        (["h.0", "h.1"], ("h.", "")),
        (["0.w", "1.w"], ("", ".w")),
        (["a.w1", "a.w2"], ("a.w1",)),
        ([f"h_{n}.w" for n in range(9)], ("h_", ".w")),
        (["h.007.w"], ("h.007.w",)),
        (["h.12345678901.w"], ("h.12345678901.w",)),
    ],
)
def test_which_numbers_count(names: list[str], parts: tuple[str, ...]) -> None:
    assert spelt(names)[names[0]].parts == parts


def numbers(run: Run) -> range:
    return range(run[0], run[1] + 1, run[2])


def held(box: Box) -> list[tuple[int, ...]]:
    return list(product(*([n for run in axis for n in numbers(run)] for axis in box)))


@given(st.integers(0, 3).flatmap(lambda axes: st.sets(st.tuples(*[st.integers(0, 5)] * axes), max_size=30)))
def test_boxes_hold_each_row_once(rows: set[tuple[int, ...]]) -> None:
    found = [row for box in boxes(rows) for row in held(box)]
    assert len(found) == len(set(found)) and set(found) == rows


@given(st.sets(st.integers(0, 40)))
def test_runs_hold_each_number_once(wanted: set[int]) -> None:
    found = [n for run in runs(sorted(wanted)) for n in numbers(run)]
    assert found == sorted(wanted)


def test_a_model_is_one_box() -> None:
    layers, experts = range(3, 61), range(256)
    assert boxes(product(layers, experts)) == ((((3, 60, 1),), ((0, 255, 1),)),)


def test_every_fourth_layer_is_one_run() -> None:
    assert runs([3, 7, 11, 15]) == ((3, 15, 4),)
    assert runs([0, 1, 2, 61]) == ((0, 2, 1), (61, 61, 1))
