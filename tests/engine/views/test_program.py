"""Programs: inference, inverses, composition, value steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import elements_of, move_programs
from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.algebra import NumpyAlgebra
from weightloom.engine.views.moves import Cut, Join, Permute, Reorder, Reshape, Specs
from weightloom.engine.views.program import Program, ValueStep
from weightloom.engine.views.view import View


@dataclass(frozen=True, slots=True)
class Cast:
    """A value step for the tests: one tensor to another dtype, no way back."""

    at: int
    dtype: str
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        return (TensorSpec(self.dtype, specs[0].shape),)

    def apply(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return arrays

    def inverse(self) -> ValueStep:
        raise NotInvertible("a cast has no way back")


def arrays_of(program: Program) -> tuple[Any, ...]:
    return tuple(elements_of(spec, seed) for seed, spec in enumerate(program.in_specs))


def same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return [(x.shape, x.tobytes()) for x in a] == [(y.shape, y.tobytes()) for y in b]


@given(move_programs())
def test_inference_gives_the_shapes_of_the_arrays(program: Program) -> None:
    made = program.apply(arrays_of(program), NumpyAlgebra())
    assert [spec.shape for spec in program.out_specs] == [array.shape for array in made]
    assert {spec.dtype for spec in program.out_specs} == {spec.dtype for spec in program.in_specs}
    assert [view.spec for view in program.views()] == list(program.out_specs)


@given(move_programs())
def test_inverse_undoes_and_is_its_own_inverse(program: Program) -> None:
    back = program.inverse()
    assert back.inverse() == program
    made = program.apply(arrays_of(program), NumpyAlgebra())
    assert same(back.apply(made, NumpyAlgebra()), arrays_of(program))


@given(move_programs())
def test_forward_then_inverse_is_the_identity(program: Program) -> None:
    back = program.inverse()
    assert program.then(back).moves == ()
    uncancelled = Program(program.in_specs, program.moves + back.moves)
    assert uncancelled.is_identity
    assert Program(back.in_specs, back.moves + program.moves).is_identity


@given(move_programs(most=3), move_programs(most=3))
def test_beside_runs_both(left: Program, right: Program) -> None:
    both = left.beside(right)
    arrays = (*arrays_of(left), *arrays_of(right))
    apart = (
        *left.apply(arrays_of(left), NumpyAlgebra()),
        *right.apply(arrays_of(right), NumpyAlgebra()),
    )
    assert same(both.apply(arrays, NumpyAlgebra()), apart)
    assert both.out_specs == (*left.out_specs, *right.out_specs)


@given(move_programs(most=3), st.data())
def test_then_is_one_after_the_other(first: Program, data: st.DataObject) -> None:
    specs = first.out_specs
    order = tuple(data.draw(st.permutations(range(len(specs)))))
    second = Program(specs, (Reorder(order),))
    chained = first.then(second)
    one_by_one = second.apply(first.apply(arrays_of(first), NumpyAlgebra()), NumpyAlgebra())
    assert same(chained.apply(arrays_of(first), NumpyAlgebra()), one_by_one)


def test_views_and_specs_are_computed_once() -> None:
    program = Program((TensorSpec("F32", (2, 3)),), (Permute(0, (1, 0)),))
    assert program.views() is program.views()
    assert program.out_specs is program.out_specs
    assert hash(program) == hash(Program(program.in_specs, program.moves))


def test_an_open_permutation_is_no_identity() -> None:
    square = (TensorSpec("F32", (2, 2)),)
    assert not Program(square, (Permute(0, (1, 0)),)).is_identity
    assert Program(square, (Permute(0, (1, 0)),) * 2).is_identity
    assert not Program((*square, *square), (Reorder((1, 0)),)).is_identity


def stacked_experts(count: int) -> Program:
    """256 gates and 256 ups, stacked and joined: rows [gate | up] of each expert."""
    specs = (TensorSpec("BF16", (4, 8)),) * (2 * count)
    rows = tuple(Reshape(at, (4, 8), (1, 4, 8)) for at in range(2 * count))
    joins = (Join(0, 0, (1,) * count), Join(1, 0, (1,) * count), Join(0, 1, (4, 4)))
    return Program(specs, (*rows, *joins))


def test_many_experts_stay_one_tile_each() -> None:
    program = stacked_experts(256)
    (view,) = program.views()
    assert view.shape == (256, 8, 8)
    assert len(view.tiles) == 512
    parts = program.inverse().views()
    assert [len(part.tiles) for part in parts] == [1] * 512
    assert parts[1].tiles[0].offset == 8 * 8


def test_inverse_of_a_stack_then_the_stack_is_one_tile() -> None:
    program = stacked_experts(8)
    whole = Program(program.out_specs, program.inverse().moves + program.moves)
    assert whole.views() == (View.identity(0, program.out_specs[0]),)


def test_segments_alternate() -> None:
    specs = (TensorSpec("BF16", (4, 6)), TensorSpec("BF16", (2,)))
    cut, cast, join = Cut(0, 0, (2, 2)), Cast(1, "F32"), Reorder((1, 0, 2))
    program = Program(specs, (cut, cast, join, Cast(0, "F16"), Cast(0, "F32")))
    first, step, second, *rest = program.segments()
    assert first == Program(specs, (cut,))
    assert step == cast
    assert isinstance(second, Program)
    assert [str(spec) for spec in second.in_specs] == ["BF16 [2, 6]", "F32 [2, 6]", "BF16 [2]"]
    assert rest == [Cast(0, "F16"), Cast(0, "F32")]
    assert Program(specs).segments() == ()


def test_value_steps_have_no_views_and_may_have_no_inverse() -> None:
    program = Program((TensorSpec("BF16", (4,)),), (Cast(0, "F32"),))
    assert not program.is_structural
    assert not program.is_identity
    assert program.out_specs == (TensorSpec("F32", (4,)),)
    with pytest.raises(PlanError, match="Cast changes values"):
        program.views()
    with pytest.raises(NotInvertible):
        program.inverse()
    chained = program.then(Program(program.out_specs, (Cast(0, "F16"),)))
    assert chained.moves == (Cast(0, "F32"), Cast(0, "F16"))


def test_value_steps_move_aside() -> None:
    left = Program((TensorSpec("BF16", (4,)),), (Cut(0, 0, (1, 3)),))
    right = Program((TensorSpec("BF16", (4,)),), (Cast(0, "F32"),))
    assert left.beside(right).moves == (Cut(0, 0, (1, 3)), Cast(2, "F32"))
    with pytest.raises(PlanError, match="takes tensors up to 1"):
        _ = Program(right.in_specs, (Cast(1, "F32"),)).out_specs


def test_then_says_which_tensor_does_not_fit() -> None:
    program = Program((TensorSpec("BF16", (4,)),))
    with pytest.raises(PlanError, match=r"tensor 0 as BF16 \[4\]\n  expected: F32 \[4\]"):
        program.then(Program((TensorSpec("F32", (4,)),)))
    with pytest.raises(PlanError, match="gives 1 tensors\n  expected: 2"):
        program.then(program.beside(program))


@settings(max_examples=20)
@given(move_programs())
def test_programs_are_values(program: Program) -> None:
    assert program == Program(program.in_specs, program.moves)
    assert len({program, Program(program.in_specs, program.moves)}) == 1
