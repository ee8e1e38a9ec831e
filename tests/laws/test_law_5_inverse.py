"""Law 5: the inverse after the forward is the identity, bit for bit; the inverse of the inverse is the thing itself."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from tests.strategies import OP_CONFIG, OP_STEPS, OpCase, flat, op_cases, share
from weightloom.engine import BlockDiagonal, Chunk, Concatenate, ConversionOp
from weightloom.engine.ops.chain import Chain, OpContext, Part, Target
from weightloom.engine.views.algebra import NumpyAlgebra

CLASSES = sorted(OP_STEPS, key=lambda op: op.__name__)


@pytest.mark.parametrize("op", CLASSES)
def test_a_bound_op_goes_back(op: type[ConversionOp]) -> None:
    @share(0.3)
    @given(op_cases(op))
    def law(case: OpCase) -> None:
        check_program(case)

    law()


@given(op_cases(max_ops=5))
def test_a_bound_chain_goes_back(case: OpCase) -> None:
    check_program(case)


def check_program(case: OpCase) -> None:
    program = case.program()
    back = program.inverse()
    sources = case.slots()
    made = back.apply(program.apply(sources, NumpyAlgebra()), NumpyAlgebra())
    assert [(a.shape, a.tobytes()) for a in made] == [(a.shape, a.tobytes()) for a in sources]
    assert back.out_specs == program.in_specs
    assert back.inverse() == program


@pytest.mark.parametrize("op", CLASSES)
def test_the_inverse_op_undoes_it_with_the_sources_as_targets(op: type[ConversionOp]) -> None:
    @share(0.3)
    @given(op_cases(op))
    def law(case: OpCase) -> None:
        check_op(case)

    law()


def check_op(case: OpCase) -> None:
    first = case.steps[0].op
    assert first.inverse().inverse() == first
    sources = case.parts()
    if isinstance(first, Concatenate | BlockDiagonal):
        # How many patterns the tensors of a join had, a lone op cannot know: each has one here.
        sources = tuple(Part(f"source{n}", (spec,)) for n, spec in enumerate(s for p in sources for s in p.specs))
        if isinstance(first.inverse(), Chunk):
            assume(len({part.specs[0].shape for part in sources}) == 1)
    targets = tuple(Target(part.label, part.specs[0] if len(part.specs) == 1 else None) for part in sources)
    chain = Chain(
        [Part(f"target{n}", specs) for n, specs in enumerate(case.made)],
        OpContext(targets, OP_CONFIG),
    )
    first.inverse().lower(chain)
    values = tuple(flat(case.arrays()))
    known = (*flat(case.expected(case.arrays())), *case.left(case.arrays()))
    made = chain.program().apply(known, NumpyAlgebra())[: len(values)]
    assert [(a.shape, a.tobytes()) for a in made] == [(a.shape, a.tobytes()) for a in values]
