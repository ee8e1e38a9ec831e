"""Surgery on plans: what each operation computes, what it refuses, and that nothing is half done."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import Checkpoint, Concatenate, Plan, RuleSet, WeightConverter, build_plan
from weightloom.engine.errors import NotInvertible, PlanError, UsageError
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.surgery import Add, Donor, Glob, Interpolate, Operation, Replace, Scale, operate
from weightloom.engine.surgery.blending import Lerped, Slerped
from weightloom.engine.surgery.operation import Side

RNG = np.random.default_rng(3)
WEIGHT = "a.0.q.weight"
PARTS = ("weight", "scales", "biases")


def plan_of(arrays: dict[str, Any], rules: RuleSet | None = None) -> Plan:
    return build_plan(Checkpoint.from_arrays(arrays), RuleSet(()) if rules is None else rules)


def donor_of(arrays: dict[str, Any]) -> Donor:
    return Donor("donor", plan_of(arrays))


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def loaded(plan: Plan, *operations: Operation) -> dict[str, Any]:
    return {name: np.array(array) for name, array in operate(plan, operations).plan.load().items()}


@pytest.mark.parametrize(
    ("pattern", "name", "captured"),
    [
        ("a.*.w", "a.0.w", ("0",)),
        ("a.*.w", "a.0.1.w", None),
        ("a.**.w", "a.w", ("",)),
        ("a.**.w", "a.0.1.w", ("0.1",)),
        ("**", "a.b", ("a.b",)),
        ("**.w", "w", ("",)),
        ("a.**", "a.b.c", ("b.c",)),
        ("a.**", "ab", None),
        ("**.q*.w", "x.y.q_proj.w", ("x.y", "_proj")),
        ("a+", "aa", None),
    ],
)
def test_globs(pattern: str, name: str, captured: tuple[str, ...] | None) -> None:
    assert Glob(pattern).captures(name) == captured
    assert captured is None or Glob(pattern).filled(captured) == name


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.**b", "**.**", "a[0]", "a?", "{a,b}", "*" * 9, "a" * 501])
def test_what_is_no_glob_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Glob(text)


@given(st.lists(st.text("ab*", min_size=1, max_size=4), min_size=1, max_size=4), st.text("ab.", max_size=8))
def test_what_a_glob_captures_fills_it_again(segments: list[str], name: str) -> None:
    try:
        glob = Glob(".".join(segments))
    except UsageError:
        return
    captured = glob.captures(name)
    if captured is not None and all(name.split(".")):
        assert glob.filled(captured) == name


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.float16])
def test_scale_rounds_once(dtype: mx.Dtype) -> None:
    base = mx.array(floats(4, 3)).astype(dtype)
    found = operate(plan_of({WEIGHT: base}), [Scale(Glob("**.weight"), factor=0.3)]).plan.load()[WEIGHT]
    assert found.dtype == dtype
    assert mx.array_equal(found, (base.astype(mx.float32) * 0.3).astype(dtype)).item()


def test_operations_act_in_order_and_on_what_they_match_alone() -> None:
    base = {WEIGHT: floats(4, 3), "a.1.q.weight": floats(4, 3)}
    other = floats(4, 3)
    add = Add(Glob(WEIGHT), donor_of({WEIGHT: other}), 0.5)
    found = loaded(plan_of(base), Scale(Glob("a.0.**"), factor=2.0), add)
    assert np.array_equal(found[WEIGHT], base[WEIGHT] * np.float32(2) + other * np.float32(0.5))
    assert np.array_equal(found["a.1.q.weight"], base["a.1.q.weight"])


def test_parameter_names_are_those_after_conversion_and_file_names_those_before() -> None:
    rules = RuleSet([WeightConverter(["gate", "up"], ["gate_up"], [Concatenate(0)])])
    base = {"m.gate.weight": floats(2, 3), "m.up.weight": floats(2, 3)}
    plan = plan_of(base, rules)
    after = loaded(plan, Scale(Glob("m.gate_up.weight"), factor=2.0))["m.gate_up.weight"]
    before = loaded(plan, Scale(Glob("m.up.weight"), factor=2.0, side=Side.FILE))["m.gate_up.weight"]
    assert np.array_equal(after, 2 * np.concatenate(list(base.values())))
    assert np.array_equal(before, np.concatenate([base["m.gate.weight"], 2 * base["m.up.weight"]]))
    with pytest.raises(PlanError, match="matches no tensor"):
        operate(plan, [Scale(Glob("m.up.weight"), factor=2.0)])


def test_a_cast_comes_after() -> None:
    base = floats(4, 3)
    plan = operate(plan_of({WEIGHT: base}), [Scale(Glob(WEIGHT), factor=1 / 3)]).plan
    found = with_dtype(plan, "BF16").load()[WEIGHT]
    assert mx.array_equal(found, (mx.array(base) * (1 / 3)).astype(mx.bfloat16)).item()


def test_the_plan_says_that_it_has_no_way_back() -> None:
    operated = operate(plan_of({WEIGHT: floats(4, 3), "b": floats(2)}), [Scale(Glob(WEIGHT), factor=2.0)])
    assert [each.parameters for each in operated.plan.report.lossy] == [(WEIGHT,)]
    assert not operated.plan.invertible
    with pytest.raises(NotInvertible, match="surgery"):
        operated.plan.inverse()
    assert [(each.name, each.operation) for each in operated.changes] == [(WEIGHT, "scale")]


def packed(seed: int) -> dict[str, mx.array]:
    dense = mx.array(np.random.default_rng(seed).standard_normal((8, 64)).astype(np.float32)).astype(mx.float16)
    codes, scales, biases = mx.quantize(dense, group_size=32, bits=4)
    return {"m.weight": codes, "m.scales": scales, "m.biases": biases}


@pytest.mark.parametrize("pattern", ["m.weight", "m.*", "**"])
def test_codes_are_scaled_by_their_scales(pattern: str) -> None:
    base = packed(1)
    found = operate(plan_of(base), [Scale(Glob(pattern), factor=2.0)]).plan.load()
    was, now = (mx.dequantize(*(each[f"m.{part}"] for part in PARTS), group_size=32, bits=4) for each in (base, found))
    assert mx.array_equal(found["m.weight"], base["m.weight"]).item()
    assert mx.array_equal(now, 2 * was).item()


def test_codes_are_replaced_with_their_scales() -> None:
    other = packed(2)
    found = operate(plan_of(packed(1)), [Replace(Glob("m.weight"), donor_of(other), Glob("m.weight"))]).plan.load()
    assert all(mx.array_equal(found[name], other[name]).item() for name in other)


def scales_as_codes() -> dict[str, mx.array]:
    return {"m.weight": mx.zeros((8, 8), mx.uint32), "m.scales": mx.zeros((8, 2), mx.uint8)}


@pytest.mark.parametrize(
    ("base", "operation", "said"),
    [
        (packed(1), Scale(Glob("m.scales"), factor=2.0), "codes that are not matched"),
        (scales_as_codes(), Scale(Glob("m.weight"), factor=2.0), "m.scales"),
        (packed(1), Add(Glob("m.weight"), donor_of(packed(1))), "are codes"),
        (packed(1), Interpolate(Glob("m.weight"), None, donor_of(packed(2)), 0.5), "are codes"),
        (packed(1), Replace(Glob("m.weight"), donor_of({"m.weight": floats(8, 64)}), Glob("m.weight")), "beside"),
        ({"m.weight": floats(8, 64)}, Replace(Glob("m.weight"), donor_of(packed(1)), Glob("m.weight")), "beside"),
        ({"n": np.zeros(3, np.int32)}, Scale(Glob("n"), factor=2.0), "are I32"),
        ({"n": floats(3)}, Add(Glob("n"), donor_of({"n": floats(4)})), r"n is F32 \[4\]"),
        ({"n": floats(3)}, Add(Glob("n"), donor_of({"o": floats(3)})), "has no 'n'"),
        ({"n": floats(3)}, Replace(Glob("n"), donor_of({"n": floats(3).astype(np.float16)}), Glob("n")), "same dtype"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(base: dict[str, Any], operation: Operation, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        operate(plan_of(base), [operation])


def test_replace_fills_its_key_with_what_the_stars_stand_for() -> None:
    other = {f"b.{n}.k.weight": floats(2, 2) for n in range(2)}
    base = {f"a.{n}.q.weight": floats(2, 2) for n in range(2)}
    found = loaded(plan_of(base), Replace(Glob("a.*.q.weight"), donor_of(other), Glob("b.*.k.weight")))
    assert all(np.array_equal(found[f"a.{n}.q.weight"], other[f"b.{n}.k.weight"]) for n in range(2))


@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("step", [Lerped, Slerped])
def test_interpolation_is_the_formula(step: type[Lerped], ratio: float) -> None:
    one, other = floats(6, 5), floats(6, 5)
    found = loaded(plan_of({"n": one}), Interpolate(Glob("n"), None, donor_of({"n": other}), ratio, step))["n"]
    a, b = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    angle = math.acos(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
    arc = (math.sin((1 - ratio) * angle) / math.sin(angle), math.sin(ratio * angle) / math.sin(angle))
    weights = arc if step is Slerped else (1 - ratio, ratio)
    assert np.allclose(found.ravel(), weights[0] * a + weights[1] * b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.0, 3.0])
def test_parallel_tensors_are_interpolated_on_the_line(factor: float) -> None:
    one = floats(4, 4)
    between = Interpolate(Glob("n"), donor_of({"n": one}), donor_of({"n": one * np.float32(factor)}), 0.5)
    assert np.allclose(loaded(plan_of({"n": floats(4, 4)}), between)["n"], one * (0.5 + 0.5 * factor), atol=1e-6)


def test_lazy_reading_gives_the_same() -> None:
    plan = operate(plan_of({WEIGHT: floats(4, 3)}), [Scale(Glob(WEIGHT), factor=0.1)]).plan
    assert mx.array_equal(plan.lazy()[WEIGHT], plan.load()[WEIGHT]).item()


def test_what_donors_take_is_foreseen() -> None:
    plan, other = plan_of({WEIGHT: floats(4, 3)}), donor_of({WEIGHT: floats(4, 3)})
    least = operate(plan, [Scale(Glob(WEIGHT), factor=2.0)]).plan.peak_bytes + plan.nbytes
    for operation in (Add(Glob(WEIGHT), other), Replace(Glob(WEIGHT), other, Glob(WEIGHT))):
        assert operate(plan, [operation]).plan.peak_bytes >= least
    assert operate(plan, [Interpolate(Glob(WEIGHT), other, other, 0.5)]).plan.peak_bytes >= least + plan.nbytes
