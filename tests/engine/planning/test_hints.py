"""What a report says about the cause of what does not fit: each hint is computed, and given only where it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.cases.fixtures import TM_RULES, specs, t0_shapes, tm, tm_fused
from weightloom.engine import Checkpoint, Drop, Plan, Rule, TensorSpec, Tie, WeightRenaming, build_plan

T0 = t0_shapes()
Shapes = Mapping[str, tuple[int, ...]]


def plan_for(file: Shapes, params: Shapes, rules: Iterable[Rule] = (), config: Mapping[str, Any] | None = None) -> Plan:
    return build_plan(Checkpoint.from_specs(specs(file)), list(rules), specs(params), config=config or {})


def hints(file: Shapes, params: Shapes = T0, rules: Iterable[Rule] = (), **config: Any) -> str:
    return "\n".join(plan_for(file, params, rules, config).report.hints)


def prefixed(names: Shapes, prefix: str) -> dict[str, tuple[int, ...]]:
    return {prefix + name: shape for name, shape in names.items()}


@pytest.mark.parametrize(
    ("file", "change"),
    [
        (t0_shapes(prefix="net."), "prefix net. -> model. would match 21 of 21"),
        (prefixed(T0, "x."), "prefix x. -> (none) would match 21 of 21"),
        ({n.removeprefix("model."): s for n, s in T0.items()}, "prefix (none) -> model. would match 20 of 21"),
        ({**t0_shapes(prefix="a.b."), "odd.weight": (2,)}, "prefix a.b. -> model. would match 21 of 22"),
    ],
)
def test_the_missing_prefix_rule_is_named_with_what_it_would_match(file: Shapes, change: str) -> None:
    assert change in hints(file)


def test_the_rule_as_it_is_given_loads_what_it_says() -> None:
    file = t0_shapes(prefix="net.")
    assert r"rename: {from: '^net\.', to: 'model.'}" in hints(file)
    assert plan_for(file, T0, [WeightRenaming(r"^net\.", "model.")]).ok()


def test_names_that_rules_convert_count_too() -> None:
    """No name of an expert is a parameter: what a prefix would match is planned, not guessed from names."""
    file = prefixed({name: array.shape for name, array in tm(3).items()}, "net.")
    params = {name: array.shape for name, array in tm_fused(3).items()}
    assert "prefix net. -> (none) would match 9 of 9" in hints(file, params, TM_RULES)


def test_what_a_rule_drops_is_not_counted() -> None:
    file = prefixed({**T0, "model.rotary": (2,)}, "x.")
    assert "would match 21 of 21" in hints(file, T0, [Drop(r"\.rotary$")])


def test_no_prefix_is_named_that_would_not_help() -> None:
    assert "prefix" not in hints({f"x.{number}.odd.thing": (2,) for number in range(5)})
    clash = {**prefixed(T0, "x."), **T0}
    assert "prefix" not in hints(clash)


def test_the_nearest_names_are_said() -> None:
    file = {name.replace("q_proj", "qq_proj").replace("model.norm", "model.norms"): s for name, s in T0.items()}
    found = hints(file)
    assert "model.layers.*.self_attn.q_proj.weight is missing and model.layers.*.self_attn.qq_proj.weight" in found
    assert "model.norm.weight is missing and model.norms.weight unexpected" in found


def test_a_name_that_is_only_as_long_is_not_near() -> None:
    file = {name.replace("mlp.up_proj", "mlp.router"): shape for name, shape in T0.items()}
    assert "is missing and" not in hints(file)


def test_fewer_and_more_layers_than_the_file_has() -> None:
    fewer = hints(t0_shapes(3), t0_shapes(2), num_hidden_layers=2)
    assert "model.layers.2: " in fewer and "fewer layers (num_hidden_layers = 2) than the file" in fewer
    more = hints(t0_shapes(2), t0_shapes(4), text_config={"num_hidden_layers": 4})
    assert "model.layers.2: " in more and "more layers (text_config.num_hidden_layers = 4) than the file" in more


@pytest.mark.case("C20")
def test_c20_sharing_is_explained_by_the_config_s_own_field() -> None:
    """C20: a layer that is there and lacks what others have."""
    params = {name: shape for name, shape in T0.items() if "layers.1.self_attn.k" not in name}
    found = hints(T0, params, num_kv_shared_layers=1, num_hidden_layers=2)
    assert "model.layers.1: self_attn.k_proj.weight" in found
    assert "share the tensors of earlier ones (num_kv_shared_layers = 1)" in found and "fewer layers" not in found
    assert "num_kv" not in hints(T0, params, num_kv_shared_layers=0)


@pytest.mark.case("C32")
def test_c32_a_missing_head_is_explained_by_the_flag() -> None:
    """C32: the tensor, that the flag is false, and both ways out; nested flags too."""
    file = {name: shape for name, shape in T0.items() if name != "lm_head.weight"}
    for flag, config in (
        ("tie_word_embeddings", {"tie_word_embeddings": False}),
        ("text_config.tie_word_embeddings", {"text_config": {"tie_word_embeddings": False, "other": 1}}),
    ):
        found = hints(file, T0, [Tie(r"^lm_head\.(weight)", r"model.embed_tokens.\1", when=flag)], **config)
        assert "lm_head.weight would share model.embed_tokens.weight" in found and f"has {flag} = False" in found
        assert "set it in the config, or supply the tensor" in found and "other" not in found


def test_mismatches_say_in_what_they_differ() -> None:
    name = "model.norm.weight"
    for dtype, shape, wanted in (
        ("F32", (4,), ("shape",)),
        ("U32", (8,), ("dtype class",)),
        ("U32", (4,), ("shape", "dtype class")),
        ("F8_E4M3", (8,), ("dtype class",)),
        ("BF16", (8,), None),
    ):
        file = specs(T0)
        file[name] = type(file[name])(dtype, shape)
        plan = build_plan(Checkpoint.from_specs(file), [], specs(T0))
        assert [each.differs for each in plan.report.mismatched] == ([wanted] if wanted else [])
        assert plan.ok(strict=False) is (wanted is None)
        said = str(plan.report)
        assert ("another class of dtype" in said) is ("dtype class" in (wanted or ()))


def test_what_is_the_other_way_round_is_said() -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    found = plan_for({**T0, name: (8, 12)}, T0).report
    assert found.mismatched[0].differs == ("transposed",)
    assert f"stored the other way round: {name}; " in found.hints[0] and "Transpose" in found.hints[0]
    assert not plan_for({**T0, name: (8, 13)}, T0).report.hints


def test_words_without_scales_are_said() -> None:
    file = specs(T0)
    file["model.norm.weight"] = TensorSpec("U32", (8,))
    (hint,) = build_plan(Checkpoint.from_specs(file), [], specs(T0)).report.hints
    assert "words or codes where floats are wanted: model.norm.weight; " in hint and "scales" in hint


@pytest.mark.case("C69", "C80")
def test_doubles_fit_no_parameter_and_the_way_out_is_said() -> None:
    """A cast leaves them alone and MLX would hand out their bytes, so a plan says at once that they do not fit."""
    file = {**specs(T0), "model.norm.weight": TensorSpec("F64", (8,))}
    found = build_plan(Checkpoint.from_specs(file), [], specs(T0)).report
    assert [each.differs for each in found.mismatched] == [("dtype class",)]
    assert "F64, which no parameter holds: model.norm.weight; " in found.hints[0] and "F32" in found.hints[0]


def test_the_full_list_is_there_on_demand() -> None:
    report = plan_for(t0_shapes(40, prefix="net."), t0_shapes(40)).report
    assert len(list(report.lines())) < 30
    full = list(report.lines(None))
    assert all(f"  {name}" in full for name in (*report.missing, *report.unexpected))
    assert report.to_json()["hints"] == list(report.hints)
