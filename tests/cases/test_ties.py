"""Cases C29, C30, C31: tied tensors of which a file has both ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import mlx.core as mx
import pytest

from tests.cases.fixtures import (
    Arrays,
    assert_same,
    const,
    contents,
    names_in,
    plan_of,
    specs,
    t0,
    t1_quantized,
    to_mlx,
    write,
)
from weightloom.engine import Plan, PlanError, Sharding, Tie, save_plan
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.saving.save import convert
from weightloom.rules import load_rules

RULES = [Tie(r"^lm_head\.(weight|scales|biases)", r"model.embed_tokens.\1", when="tie_word_embeddings")]
TIED = {"tie_word_embeddings": True}
UNTIED = {"tie_word_embeddings": False}


def one_copy(file: Mapping[str, object]) -> set[str]:
    return {name for name in file if not name.startswith("lm_head.")}


def assert_head_is_embedding(loaded: Mapping[str, mx.array]) -> None:
    for name, array in loaded.items():
        if name.startswith("lm_head."):
            assert mx.array_equal(array, loaded[name.replace("lm_head", "model.embed_tokens")])


def in_named_layout(plan: Plan, file: Arrays) -> Plan:
    return plan.then(save_plan(RULES, specs(file), TIED).inverse())


def both_layouts(tmp_path: Path, file: Arrays) -> Plan:
    """Load a tied file with both copies; the original layout has both again, a named one has one."""
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", RULES, specs(file), TIED)
    loaded = plan.load()
    assert_same(loaded, file)
    assert_head_is_embedding(loaded)
    plan.save(loaded, tmp_path / "original")
    assert contents(tmp_path / "original") == contents(tmp_path / "in")
    convert(in_named_layout(plan, file), tmp_path / "named")
    assert names_in(tmp_path / "named") == one_copy(file)
    save_plan(RULES, specs(file), TIED).save(loaded, tmp_path / "fresh")
    assert names_in(tmp_path / "fresh") == one_copy(file)
    for folder in ("named", "fresh"):
        assert_same(plan_of(tmp_path / folder, RULES, specs(file), TIED).load(), file)
    return plan


@pytest.mark.case("C29")
def test_c29_a_redundant_head_is_loaded_and_reported(tmp_path: Path) -> None:
    """C29: tie true and an equal `lm_head.weight` in the file: the head is the embedding, the copy is reported."""
    file = t0()
    file["lm_head.weight"] = file["model.embed_tokens.weight"].copy()
    plan = both_layouts(tmp_path, file)
    assert [(record.parameter, record.other, record.copy) for record in plan.report.tied] == [
        ("lm_head.weight", "model.embed_tokens.weight", True)
    ]


@pytest.mark.case("C30")
def test_c30_a_quantized_heads_three_tensors_go_together(tmp_path: Path) -> None:
    """C30: weight, scales and biases of a tied head all go; with tie false all three stay."""
    file = t1_quantized()
    plan = both_layouts(tmp_path, file)
    assert [record.parameter for record in plan.report.tied] == ["lm_head.biases", "lm_head.scales", "lm_head.weight"]
    untied = plan_of(tmp_path / "in", RULES, specs(file), UNTIED)
    assert not untied.report.tied
    convert(untied.then(save_plan(RULES, specs(file), UNTIED).inverse()), tmp_path / "untied")
    assert names_in(tmp_path / "untied") == set(file)


@pytest.mark.case("C30")
@pytest.mark.parametrize("family", ["llama", "qwen3_moe", "gemma", "mixtral"])
def test_c30_the_shipped_rules_take_all_three(tmp_path: Path, family: str) -> None:
    write(tmp_path / "model.safetensors", t1_quantized())
    tied = plan_of(tmp_path, load_rules(family), None, TIED)
    assert [record.parameter for record in tied.report.tied] == ["lm_head.biases", "lm_head.scales", "lm_head.weight"]
    assert not plan_of(tmp_path, load_rules(family), None, UNTIED).report.tied


def different_ends() -> Arrays:
    file = t0()
    return {**file, "model.embed_tokens.weight": const(1.0, 16, 8), "lm_head.weight": const(2.0, 16, 8)}


@pytest.mark.case("C31")
def test_c31_two_different_ends_are_never_silent(tmp_path: Path) -> None:
    """C31: tie true, embedding 1.0, head 2.0. Chosen: stop, naming both; with the tie off, 2.0 stays and is saved."""
    file = different_ends()
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", RULES, specs(file), TIED)
    with pytest.raises(PlanError, match=r"lm_head.weight and model.embed_tokens.weight differ"):
        plan.load()
    with pytest.raises(PlanError, match="differ"):
        convert(in_named_layout(plan, file), tmp_path / "named")
    assert not (tmp_path / "named").exists()
    untied = plan_of(tmp_path / "in", RULES, specs(file), UNTIED)
    untied.save(untied.load(), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


def test_one_end_in_the_file_gives_both_and_is_saved_once(tmp_path: Path) -> None:
    """A tied file without a head loads with one and saves without; either end may be given back alone."""
    file = {name: array for name, array in t0().items() if name != "lm_head.weight"}
    params = {**file, "lm_head.weight": file["model.embed_tokens.weight"]}
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", RULES, specs(params), TIED)
    loaded = plan.load()
    assert_same(loaded, params)
    for number, left_out in enumerate((None, "lm_head.weight", "model.embed_tokens.weight")):
        given = {name: array for name, array in loaded.items() if name != left_out}
        plan.save(given, tmp_path / str(number))
        assert contents(tmp_path / str(number)) == contents(tmp_path / "in")


@pytest.mark.parametrize("in_file", [("model.embed_tokens.weight",), ("lm_head.weight",), None])
def test_a_tied_parameter_given_twice_with_two_values_is_refused(
    tmp_path: Path, in_file: tuple[str, ...] | None
) -> None:
    """Nothing is written where the two ends that a save is given have become different."""
    names = ("model.embed_tokens.weight", "lm_head.weight")
    file = {name: const(1.0, 16, 8) for name in in_file or names}
    params = {name: const(1.0, 16, 8) for name in names}
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", RULES, specs(params), TIED)
    for plan_or_fresh in (plan, save_plan(RULES, specs(params), TIED)):
        with pytest.raises(PlanError, match=r"lm_head.weight and model.embed_tokens.weight") as caught:
            plan_or_fresh.save({**to_mlx(params), "lm_head.weight": mx.zeros((16, 8))}, tmp_path / "out")
        assert caught.value.tensor == "lm_head.weight"
        assert not (tmp_path / "out").exists()


def test_a_tied_parameter_that_is_cut_otherwise_is_read_apart(tmp_path: Path) -> None:
    """A rank may hold a part of the head and the whole embedding."""
    file = {name: array for name, array in t0().items() if name != "lm_head.weight"}
    params = {**file, "lm_head.weight": file["model.embed_tokens.weight"]}
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", RULES, specs(params), TIED)
    loaded = plan.load(Sharding(1, 2, {"lm_head": "column"}))
    half = {**params, "lm_head.weight": file["model.embed_tokens.weight"][8:]}
    assert_same(loaded, half)
    same = plan.load(Sharding(1, 2, {"lm_head": "vocab", "embed_tokens": "vocab"}))
    assert same["lm_head.weight"] is same["model.embed_tokens.weight"] and same["lm_head.weight"].shape == (8, 8)


def test_progress_ends_at_its_total_and_shared_bytes_count_once(tmp_path: Path) -> None:
    """Tied, cut and cast loads all say how much there is to read, and read that much."""
    file = t0()
    file["lm_head.weight"] = file["model.embed_tokens.weight"].copy()
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", RULES, specs(file), TIED)
    assert plan.nbytes == sum(array.nbytes for array in file.values()) - file["lm_head.weight"].nbytes
    sharding = Sharding(0, 2, {"embed_tokens": "vocab", "lm_head": "vocab", "gate_proj": "column"})
    for chosen, part in ((plan, None), (plan, sharding), (with_dtype(plan, "F16"), None)):
        seen: list[tuple[int, int]] = []
        chosen.load(part, progress=lambda done, total, seen=seen: seen.append((done, total)))  # type: ignore[misc]
        assert seen[-1][0] == seen[-1][1] == max(done for done, _ in seen)
        assert len({total for _, total in seen}) == 1


def test_two_different_ends_of_a_cast_plan_are_refused(tmp_path: Path) -> None:
    """Casting does not hide that the ends differ."""
    file = different_ends()
    write(tmp_path / "in" / "model.safetensors", file)
    plan = with_dtype(plan_of(tmp_path / "in", RULES, specs(file), TIED), "F16")
    with pytest.raises(PlanError, match="differ"):
        plan.load()
    with pytest.raises(PlanError, match="differ"):
        convert(plan, tmp_path / "out")
