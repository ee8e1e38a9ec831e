"""Law 4: the shapes and dtypes that are inferred are those of the arrays that are made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import OP_STEPS, VALUE_OPS, OpCase, flat, op_cases, share
from weightloom.engine import ConversionOp
from weightloom.engine import ops as shipped
from weightloom.engine.views.algebra import NumpyAlgebra

CLASSES = sorted(OP_STEPS, key=lambda op: op.__name__)


def test_every_op_that_ships_has_a_strategy() -> None:
    found = {getattr(shipped, name) for name in shipped.__all__}
    assert {op for op in found if issubclass(op, ConversionOp) and op is not ConversionOp} == {*OP_STEPS, *VALUE_OPS}


def check_values(case: OpCase) -> None:
    """The program's results and inferred specs are what NumPy makes."""
    program = case.program()
    parts = case.arrays()
    expected = [*flat(case.expected(parts)), *case.left(parts)]
    made = program.apply(case.slots(), NumpyAlgebra())
    assert [(spec.dtype, spec.shape) for spec in program.out_specs] == [(case.dtype, a.shape) for a in expected]
    assert [array.tobytes() for array in made] == [array.tobytes() for array in expected]


@pytest.mark.parametrize("op", CLASSES)
def test_each_op_makes_what_numpy_makes(op: type[ConversionOp]) -> None:
    @share(0.3)
    @given(op_cases(op))
    def law(case: OpCase) -> None:
        check_values(case)

    law()


@given(st.data())
def test_chains_make_what_numpy_makes(data: st.DataObject) -> None:
    check_values(data.draw(op_cases(max_ops=5)))
