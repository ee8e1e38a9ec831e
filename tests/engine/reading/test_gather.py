"""Gather: the bytes of views, against NumPy; what is read and how much scratch it takes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import elements_of, move_programs, packed_bytes
from weightloom.engine.errors import PlanError
from weightloom.engine.reading.gather import check_bytes, gather, gather_within, runs, scratch_needed, scratch_within
from weightloom.engine.reading.limits import Limits
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.algebra import NumpyAlgebra
from weightloom.engine.views.moves import Cut, Join, Permute, Reorder, Reshape
from weightloom.engine.views.program import Program
from weightloom.engine.views.view import View

GAP = 64 << 10
LIMITS = st.builds(
    Limits,
    scratch=st.sampled_from((0, 1, 5, 16, 64, 8 << 20)),
    gap=st.sampled_from((0, 1, 3, 8, 20, GAP)),
    run=st.sampled_from((0, 4, 16, 4 << 10)),
)


class Source:
    """Tensors in memory that note each read: (slot, offset, length), and the scratch seen."""

    def __init__(self, data: list[bytes]) -> None:
        self.data = data
        self.reads: list[tuple[int, int, int]] = []
        self.buffers: dict[int, int] = {}

    def __call__(self, slot: int, offset: int, buffer: memoryview) -> None:
        assert buffer.nbytes > 0
        assert 0 <= offset <= offset + buffer.nbytes <= len(self.data[slot])
        buffer[:] = self.data[slot][offset : offset + buffer.nbytes]
        self.reads.append((slot, offset, buffer.nbytes))
        owner: Any = buffer.obj
        self.buffers[id(owner)] = len(owner)

    @property
    def total(self) -> int:
        return sum(length for _, _, length in self.reads)


def source_of(program: Program) -> Source:
    specs = program.in_specs
    return Source([packed_bytes(elements_of(s, at), s.dtype or "") for at, s in enumerate(specs)])


def gathered(view: View, source: Source, limits: Limits | None = None) -> bytes:
    """Gather, and check what holds for every gather: scratch as predicted, reads within the allowance."""
    limits = limits or Limits()
    out = bytearray(view.nbytes)
    gather_within(view, source, memoryview(out), limits)
    scratch = sum(size for owner, size in source.buffers.items() if owner != id(out))
    assert scratch <= scratch_within(view, limits) <= max(limits.scratch, 8)
    check_reads(view, source, limits.gap)
    return bytes(out)


def check_reads(view: View, source: Source, gap: int) -> None:
    """Every needed byte is read, nothing is read twice, and only gaps below `gap` are read along."""
    for slot, data in enumerate(source.data):
        times = np.zeros(len(data), np.uint8)
        for at, offset, length in source.reads:
            if at == slot:
                times[offset : offset + length] += 1
        allowed = np.zeros(len(data), np.uint8)
        end = None
        for at, offset, length in runs(view):
            if at == slot:
                near = end is not None and offset - end < gap
                allowed[end if near else offset : offset + length] = 1
                assert (times[offset : offset + length] == 1).all()
                end = offset + length
        assert (times <= allowed).all()


def whole_bytes(view: View) -> bool:
    try:
        check_bytes(view)
    except PlanError:
        return False
    return True


@given(move_programs(), LIMITS)
def test_gather_gives_the_bytes_that_the_arrays_have(program: Program, limits: Limits) -> None:
    arrays = tuple(elements_of(spec, at) for at, spec in enumerate(program.in_specs))
    made = program.apply(arrays, NumpyAlgebra())
    for view, array in zip(program.views(), made, strict=True):
        if whole_bytes(view):
            assert gathered(view, source_of(program), limits) == packed_bytes(array, view.dtype or "")
        else:
            assert view.dtype in ("F4", "F6_E2M3")


@given(move_programs())
def test_whole_bytes_are_never_refused(program: Program) -> None:
    wide = program.in_specs[0].dtype not in ("F4", "F6_E2M3")
    assert all(whole_bytes(view) for view in program.views()) or not wide


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    pairs = (draw(st.lists(st.integers(0, size), min_size=2, max_size=2)) for size in shape)
    return tuple((min(pair), max(pair)) for pair in pairs)


@given(move_programs(), LIMITS, st.data())
def test_a_shard_reads_the_same_as_cutting_the_whole(program: Program, limits: Limits, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(program.out_specs) - 1))
    view = program.views()[at]
    box = data.draw(boxes(view.shape))
    shard = view
    for dim, (start, stop) in enumerate(box):
        shard = shard.cut(dim, start, stop)
    assume(whole_bytes(shard))
    arrays = tuple(elements_of(spec, at) for at, spec in enumerate(program.in_specs))
    cut = program.apply(arrays, NumpyAlgebra())[at][tuple(slice(*pair) for pair in box)]
    assert gathered(shard, source_of(program), limits) == packed_bytes(cut, view.dtype or "")


@given(move_programs(), LIMITS, st.data())
def test_a_packed_shard_is_a_cut_of_each_part(program: Program, limits: Limits, data: st.DataObject) -> None:
    """Rank `rank` of 2 of a dim that holds two halves: half of each, joined."""
    found = [
        (at, dim)
        for at, spec in enumerate(program.out_specs)
        for dim, size in enumerate(spec.shape)
        if size and size % 4 == 0
    ]
    assume(found)
    at, dim = data.draw(st.sampled_from(found))
    rank = data.draw(st.integers(0, 1))
    view = program.views()[at]
    quarter = view.shape[dim] // 4
    starts = (rank * quarter, (2 + rank) * quarter)
    shard = View.join([view.cut(dim, start, start + quarter) for start in starts], dim)
    assume(whole_bytes(shard))
    arrays = tuple(elements_of(spec, at) for at, spec in enumerate(program.in_specs))
    rows = np.concatenate([np.arange(start, start + quarter) for start in starts])
    cut = program.apply(arrays, NumpyAlgebra())[at].take(rows, axis=dim)
    assert gathered(shard, source_of(program), limits) == packed_bytes(cut, view.dtype or "")


@given(move_programs())
def test_runs_ascend_and_cover_the_view(program: Program) -> None:
    for view in filter(whole_bytes, program.views()):
        found = list(runs(view))
        assert found == sorted(found)
        assert sum(length for _, _, length in found) == view.nbytes
        assert all(a[0] < b[0] or a[1] + a[2] < b[1] for a, b in pairwise(found))


def test_what_is_contiguous_is_read_in_place() -> None:
    specs = (TensorSpec("F32", (3, 4)), TensorSpec("F32", (2, 4)))
    program = Program(specs, (Join(0, 0, (3, 2)),))
    source, (view,) = source_of(program), program.views()
    gathered(view, source)
    assert source.reads == [(0, 0, 48), (1, 0, 32)]
    assert scratch_needed(view) == 0


def test_long_gaps_are_not_read() -> None:
    spec = TensorSpec("U8", (4, 3 * GAP))
    program = Program((spec,), (Cut(0, 1, (GAP, 100, 2 * GAP - 100)),))
    source, view = source_of(program), program.views()[1]
    gathered(view, source)
    assert source.reads == [(0, row * 3 * GAP + GAP, 100) for row in range(4)]
    assert scratch_needed(view) == 0


def test_short_gaps_are_read_along() -> None:
    program = Program((TensorSpec("U8", (4, 3000)),), (Cut(0, 1, (1000, 1000, 1000)),))
    source, view = source_of(program), program.views()[1]
    gathered(view, source)
    assert source.reads == [(0, 1000, 3 * 3000 + 1000)]


def test_scattered_runs_far_apart_share_one_block() -> None:
    """Columns of a tall stack: reads stay apart, yet are placed together."""
    spec = TensorSpec("U16", (3, 2, GAP))
    program = Program((spec,), (Cut(0, 2, (8, GAP - 8)), Permute(0, (2, 1, 0))))
    source, view = source_of(program), program.views()[0]
    array = elements_of(spec, 0)[:, :, :8].transpose(2, 1, 0)
    assert gathered(view, source) == array.tobytes()
    assert source.reads == [(0, row * 2 * GAP, 16) for row in range(6)]


@pytest.mark.parametrize("scratch_bytes", [0, 3, 1000, 4096, 70_000])
def test_a_transpose_is_read_once_in_blocks(scratch_bytes: int) -> None:
    program = Program((TensorSpec("F32", (96, 50)),), (Permute(0, (1, 0)),))
    source, (view,) = source_of(program), program.views()
    assert gathered(view, source, Limits(scratch_bytes)) == elements_of(program.in_specs[0], 0).T.tobytes()
    assert source.total == view.nbytes


def test_interleaved_rows_are_one_window() -> None:
    """Rows g0 u0 g1 u1 ... made from [gate | up], as one packed expert layout has them."""
    woven = (Join(0, 1, (1, 1)), Reshape(0, (3, 2, 4), (6, 4)))
    moves = (Cut(0, 0, (3, 3)), Reshape(0, (3, 4), (3, 1, 4)), Reshape(1, (3, 4), (3, 1, 4)))
    program = Program((TensorSpec("BF16", (6, 4)),), (*moves, *woven))
    source, (view,) = source_of(program), program.views()
    assert len(view.tiles) == 1
    assert gathered(view, source) == elements_of(program.in_specs[0], 0)[[0, 3, 1, 4, 2, 5]].tobytes()
    assert source.reads == [(0, 0, 48)]


def test_shuffled_columns_are_read_once() -> None:
    order = (3, 1, 4, 0, 2)
    moves = (Cut(0, 1, (2,) * 5), Reorder(order), Join(0, 1, (2,) * 5))
    program = Program((TensorSpec("BF16", (7, 10)),), moves)
    source, (view,) = source_of(program), program.views()
    array = elements_of(program.in_specs[0], 0).reshape(7, 5, 2)[:, list(order)]
    assert gathered(view, source) == array.tobytes()
    assert source.total == view.nbytes


def test_pieces_of_a_byte_are_refused() -> None:
    program = Program((TensorSpec("F4", (4, 4)),), (Permute(0, (1, 0)),))
    (view,) = program.views()
    with pytest.raises(PlanError, match="inside a byte"):
        check_bytes(view)
    with pytest.raises(PlanError, match="inside a byte"):
        gather(view, source_of(program), memoryview(bytearray(8)))


def test_a_buffer_of_another_size_is_refused() -> None:
    view = View.identity(0, TensorSpec("F32", (2,)))
    with pytest.raises(PlanError, match="buffer of 4 bytes\n  expected: 8"):
        gather(view, Source([bytes(8)]), memoryview(bytearray(4)))
    with pytest.raises(PlanError, match="buffer of 8 bytes"):
        gather(view, Source([bytes(8)]), memoryview(bytes(8)))


@pytest.mark.parametrize("dtype", [None, "F7"])
def test_a_dtype_without_a_width_is_refused(dtype: str | None) -> None:
    view = View(dtype, (), View.identity(0, TensorSpec("U8", ())).tiles)
    with pytest.raises(PlanError, match=f"bytes of dtype {dtype}"):
        check_bytes(view)


def test_an_empty_tensor_reads_nothing() -> None:
    view = View.identity(0, TensorSpec("F32", (3, 0)))
    gather(view, Source([b""]), memoryview(bytearray()))
    assert list(runs(view)) == []
    assert scratch_needed(view) == 0
