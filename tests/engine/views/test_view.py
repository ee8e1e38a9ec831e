"""Views: tiles stay few, misuse is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import move_programs
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.axis import Axis, Factor, clip, split
from weightloom.engine.views.program import Program
from weightloom.engine.views.view import MAX_DIMS, View


def positions(axis: Axis) -> dict[int, int]:
    """What an axis covers: position in the view -> offset in the source."""
    found = {axis.start: 0}
    for times, step, stride in axis.factors:
        found = {at + i * step: to + i * stride for at, to in found.items() for i in range(times)}
    return found


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """Nested factors, from the inside out, with source strides in another order."""
    factors: list[Factor] = []
    length = 1
    for _ in range(draw(st.integers(0, 3))):
        times, step = draw(st.integers(2, 4)), length + draw(st.integers(0, 3))
        factors.insert(0, Factor(times, step, draw(st.integers(1, 100))))
        length += (times - 1) * step
    return Axis(draw(st.integers(0, 7)), tuple(factors))


@given(axes(), st.integers(0, 40), st.integers(0, 40))
def test_clip_keeps_what_lies_inside(axis: Axis, start: int, size: int) -> None:
    kept: dict[int, int] = {}
    for offset, part in clip(axis, start, start + size):
        found = {at + start: to + offset for at, to in positions(part).items()}
        assert not kept.keys() & found.keys()
        kept |= found
    assert kept == {at: to for at, to in positions(axis).items() if start <= at < start + size}


@given(axes(), st.integers(1, 20))
def test_split_gives_rows_and_columns(axis: Axis, size: int) -> None:
    kept: dict[int, int] = {}
    for offset, outer, inner in split(axis, size):
        rows, columns = positions(outer), positions(inner)
        assert all(0 <= column < size for column in columns)
        found = {r * size + c: offset + a + b for r, a in rows.items() for c, b in columns.items()}
        assert not kept.keys() & found.keys()
        kept |= found
    assert kept == positions(axis)


def nested(factors: Iterable[Factor]) -> bool:
    """Whether each step is longer than all that comes after it reaches."""
    found = list(factors)
    return all(f.step > sum((g.times - 1) * g.step for g in found[at + 1 :]) for at, f in enumerate(found))


@given(move_programs())
def test_tiles_nest_and_cover_each_element_once(program: Program) -> None:
    for view in program.views():
        covered = Counter(at for tile in view for at in product(*(positions(axis).keys() for axis in tile.axes)))
        assert covered == Counter(product(*map(range, view.shape)))
        for tile in view:
            assert all(nested(axis.factors) for axis in tile.axes)
            loops = [factor for axis in tile.axes for factor in axis.factors]
            in_source = [Factor(times, stride, 0) for times, _, stride in loops]
            assert nested(sorted(in_source, key=lambda factor: -factor.step))


def rows(shape: tuple[int, ...], slot: int = 0) -> View:
    return View.identity(slot, TensorSpec("F32", shape))


def test_a_merged_dim_keeps_its_factors() -> None:
    """A rope permutation is there and back one tile, and then the tensor as it was."""
    halves = rows((8, 2, 16, 4)).permute((0, 2, 1, 3)).reshape((256, 4))
    assert len(halves.tiles) == 1
    assert halves.reshape((8, 16, 2, 4)).permute((0, 2, 1, 3)) == rows((8, 2, 16, 4))


def test_interleaving_two_tensors_takes_two_tiles() -> None:
    pair = View.join([rows((1000, 1), 0), rows((1000, 1), 1)], 1).reshape((2000,))
    assert len(pair.tiles) == 2
    assert len(pair.cut(0, 501, 1503).tiles) == 2
    assert len(pair.reshape((20, 100)).tiles) == 2


def test_cut_and_joined_is_the_tensor_again() -> None:
    whole = rows((6, 5))
    assert View.join([whole.cut(0, 0, 1), whole.cut(0, 1, 4), whole.cut(0, 4, 6)], 0) == whole
    assert View.join([whole.cut(1, i, i + 1) for i in range(5)], 1) == whole


def test_shapes_without_elements_or_dims() -> None:
    assert rows(()).reshape((1, 1)).reshape(()) == rows(())
    assert rows((0, 3)).reshape((5, 0)).permute((1, 0)).shape == (0, 5)
    assert View.join([rows((0, 3)), rows((2, 3))], 0).tiles == rows((2, 3)).tiles
    assert rows((4, 3)).cut(0, 2, 2).tiles == ()


def test_slots_are_renamed() -> None:
    view = View.join([rows((2,), 0), rows((2,), 1)], 0).rename_slots({0: 7})
    assert view.slots == (1, 7)
    assert [tile.slot for tile in view] == [7, 1]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda view: view.reshape((5, 5)),
        lambda view: view.reshape((-4, -6)),
        lambda view: view.permute((0, 0)),
        lambda view: view.cut(2, 0, 1),
        lambda view: view.cut(0, 0, 5),
        lambda view: view.cut(0, 3, 2),
        lambda view: View.join([view, rows((4, 5))], 0),
        lambda view: View.join([view, View.identity(0, TensorSpec("I32", (4, 6)))], 0),
        lambda view: View.join([view, view], 2),
    ],
)
def test_misuse_is_refused(misuse: Any) -> None:
    with pytest.raises(PlanError):
        misuse(rows((4, 6)))


def test_too_many_tiles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd columns of one tensor between even ones of another, cut by a size that shares no factor."""
    monkeypatch.setattr("weightloom.engine.views.view.MAX_TILES", 1000)
    wide = 2 * 1000 + 1
    split_apart = View.join([rows((3, wide), 0).permute((1, 0)), rows((1, 3), 1)], 0)
    with pytest.raises(PlanError, match="more than 1000 pieces"):
        split_apart.reshape((3, wide + 1))


def test_a_tensor_of_many_dims_passes_but_does_not_reshape() -> None:
    deep = rows((1,) * 2000)
    assert deep.cut(7, 0, 1) == deep
    with pytest.raises(PlanError, match="2000 dims"):
        deep.reshape((1,))


def test_dims_up_to_the_limit_are_followed() -> None:
    deep = (2,) * 12 + (1,) * (MAX_DIMS - 12)
    assert rows(deep).permute(tuple(reversed(range(MAX_DIMS)))).reshape((64, 64)).reshape(deep).shape == deep
