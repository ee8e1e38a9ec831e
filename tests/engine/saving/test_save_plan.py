"""save_plan: what a model that was never loaded is written as, whatever way its rules were made."""

from __future__ import annotations

import pytest

from weightloom.engine import Concatenate, NotInvertible, RuleSet, Split, TensorSpec, WeightConverter, save_plan

SPLIT = WeightConverter("c", ["a", "b"], [Split(sizes=[2, 2])])
JOIN = WeightConverter(["a", "b"], "c", [Concatenate(0, sizes=[2, 2])])


def test_a_converter_that_is_the_inverse_of_another_is_undone_as_any() -> None:
    joined = {"c": TensorSpec("F32", (4,))}
    assert list(save_plan([JOIN], joined).sources) == ["a", "b"]
    assert list(save_plan([SPLIT.inverse()], joined).sources) == ["a", "b"]
    assert list(save_plan([JOIN.inverse()], dict.fromkeys("ab", TensorSpec("F32", (2,)))).sources) == ["c"]


def test_one_that_is_never_written_is_not() -> None:
    joined = {"c": TensorSpec("F32", (4,))}
    for rule in (JOIN, SPLIT.inverse()):
        assert list(save_plan([rule.replace(always=False)], joined).sources) == ["c"]


def test_what_does_not_fit_names_the_parameter_and_the_rule() -> None:
    with pytest.raises(NotInvertible, match=r"^c: Split: 5 rows .* \[.*Split\]") as raised:
        save_plan(RuleSet([JOIN]), {"c": TensorSpec("F32", (5,))})
    assert raised.value.tensor == "c" and raised.value.rule is not None
