"""Ties of more than two ends: an encoder and a decoder that share their embeddings, and a head that scores by them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Array, const, contents, filled, names_in, plan_of, specs, to_mlx, write
from weightloom.engine import Plan, PlanError, Sharding, Tie, save_plan
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.planning.composing.part import part_of
from weightloom.engine.saving.save import convert

SHARED = "model.shared.weight"
ENDS = (SHARED, "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
RULES = [
    Tie(r"^model\.(?:encoder|decoder)\.embed_tokens\.(weight)", r"model.shared.\1"),
    Tie(r"^lm_head\.(weight)", r"model.shared.\1"),
]
# A chain: each end is tied to the one before it.
CHAIN = [Tie(f"^{re.escape(name)}$", other) for other, name in pairwise(ENDS)]
PARAMS = specs({**dict.fromkeys(ENDS, (6, 4)), "model.norm.weight": (4,)})
SUBSETS = [names for count in range(1, 5) for names in combinations(ENDS, count)]


def file_of(names: Iterable[str]) -> dict[str, Array]:
    table = filled({"table": (6, 4)}, seed=4)["table"]
    return {**{name: table.copy() for name in names}, **filled({"model.norm.weight": (4,)})}


def plan_for(folder: Path, names: Iterable[str], rules: list[Tie]) -> Plan:
    write(folder / "model.safetensors", file_of(names))
    return plan_of(folder, rules, PARAMS)


@pytest.mark.parametrize("rules", [RULES, CHAIN], ids=["star", "chain"])
@pytest.mark.parametrize("names", SUBSETS, ids=lambda names: "+".join(name.split(".")[-2] for name in names))
def test_whichever_ends_a_file_has_all_are_one(tmp_path: Path, names: tuple[str, ...], rules: list[Tie]) -> None:
    """Every end has the array, the other copies are checked, and the file comes back as it was."""
    plan = plan_for(tmp_path / "in", names, rules)
    assert plan.ok(), plan.report
    loaded = plan.load()
    assert set(loaded) == set(PARAMS)
    assert len({id(loaded[name]) for name in ENDS}) == 1 and plan.nbytes == 6 * 4 * 4 + 4 * 4
    assert sum(record.copy for record in plan.report.tied) == len(names) - 1
    assert len(plan.report.tied) == 3 and plan.report.tied_names == (tuple(sorted(ENDS)),)
    lazy = plan.lazy()
    assert len({id(lazy[name]) for name in ENDS}) == 1
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")
    cast = with_dtype(plan, "BF16").load()
    assert len({id(cast[name]) for name in ENDS}) == 1 and cast[SHARED].dtype == mx.bfloat16


@pytest.mark.parametrize("rules", [RULES, CHAIN], ids=["star", "chain"])
def test_a_named_layout_has_one_copy(tmp_path: Path, rules: list[Tie]) -> None:
    plan = plan_for(tmp_path / "in", ENDS, rules)
    fresh = save_plan(rules, PARAMS)
    fresh.save(plan.load(), tmp_path / "fresh")
    convert(plan.then(save_plan(rules, plan.params).inverse()), tmp_path / "named")
    for folder in ("fresh", "named"):
        assert names_in(tmp_path / folder) == {SHARED, "model.norm.weight"}
        assert plan_of(tmp_path / folder, rules, PARAMS).ok()


@pytest.mark.parametrize("rules", [RULES, CHAIN], ids=["star", "chain"])
@pytest.mark.parametrize("other", ENDS)
def test_one_end_that_differs_is_never_silent(tmp_path: Path, other: str, rules: list[Tie]) -> None:
    write(tmp_path / "in" / "model.safetensors", {**file_of(ENDS), other: const(2.0, 6, 4)})
    plan = plan_of(tmp_path / "in", rules, PARAMS)
    with pytest.raises(PlanError, match="differ") as caught:
        plan.load()
    assert "lm_head" in str(caught.value) or "embed_tokens" in str(caught.value)
    with pytest.raises(PlanError, match="differ"):
        mx.eval(plan.lazy()[other])


def test_ends_that_became_different_are_not_saved(tmp_path: Path) -> None:
    plan = plan_for(tmp_path / "in", ENDS[:1], RULES)
    changed = {**plan.load(), **to_mlx({ENDS[2]: const(3.0, 6, 4)})}
    with pytest.raises(PlanError, match=r"model\.decoder\.embed_tokens\.weight"):
        plan.save(changed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ties_in_a_circle_are_one_set(tmp_path: Path) -> None:
    """Nobody writes that on purpose; each name is still in one group, and in one record."""
    circle = [*CHAIN, Tie(r"^model\.shared\.weight$", ENDS[-1])]
    for number, names in enumerate((ENDS, ENDS[1:2])):
        plan = plan_for(tmp_path / str(number), names, circle)
        assert plan.ok() and len(plan.report.tied) == 3
        assert len({id(array) for name, array in plan.load().items() if name in ENDS}) == 1


def test_of_several_ties_the_one_counts_whose_other_end_is_there(tmp_path: Path) -> None:
    """Rules for two forms of a family, of which the file is in one."""
    rules = [Tie(r"^lm_head\.(weight)", r"language_model.embed.\1"), *RULES]
    write(tmp_path / "model.safetensors", file_of((SHARED, ENDS[3])))
    for params in (PARAMS, None):
        tied = plan_of(tmp_path, rules, params).report.tied
        assert {(each.parameter, each.other) for each in tied if each.copy} == {(ENDS[3], SHARED)}


@pytest.mark.parametrize("names", [ENDS[:1], ENDS[3:], ENDS], ids=["shared", "head", "all"])
def test_a_rank_may_cut_each_end_in_its_own_way(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Ends that are cut alike stay one array; one that is cut otherwise is read apart."""
    plan = plan_for(tmp_path / "in", names, RULES)
    table = file_of(names)[names[0]]
    loaded = plan.load(
        Sharding(1, 2, {"lm_head": "vocab", "shared": "vocab", "encoder": "row", "decoder": "replicate"})
    )
    wanted = dict(zip(ENDS, (table[3:], table[:, 2:], table, table[3:]), strict=True))
    for name, part in wanted.items():
        assert np.array_equal(np.array(loaded[name]), part), name
    assert loaded["lm_head.weight"] is loaded[SHARED]


def test_a_part_of_a_plan_keeps_its_ties(tmp_path: Path) -> None:
    """What one stage of several holds: the ends that are there are one array, and a cast hides no difference."""
    plan = plan_for(tmp_path / "in", ENDS, RULES)
    part = part_of(with_dtype(plan, "BF16"), {SHARED, "lm_head.weight"})
    loaded = part.load()
    assert set(loaded) >= {SHARED, "lm_head.weight"} and loaded[SHARED] is loaded["lm_head.weight"]
    file = file_of(ENDS)
    write(tmp_path / "in" / "model.safetensors", {**file, "lm_head.weight": np.nextafter(file[SHARED], 9)})
    other = part_of(with_dtype(plan_of(tmp_path / "in", RULES, PARAMS), "BF16"), {SHARED, "lm_head.weight"})
    with pytest.raises(PlanError, match=r"lm_head\.weight and model\.shared\.weight differ"):
        other.load()
