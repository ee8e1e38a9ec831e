from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.fixtures import Arrays, const, halves, iota, t0, tm, write, write_sharded
from tests.runtime.support import T0_CONFIG, Cli, checkpoint
from weightloom.engine import Checkpoint, NotInvertible, PlanError, RuleSet, WeightRenaming, build_plan
from weightloom.runtime.converting import verification
from weightloom.runtime.converting.verification import Verification, compare, difference, verify


def compared(folder: Path, one: Arrays, other: Arrays) -> Verification:
    """Compare two files of the same name, as if the second had been written for the first."""
    write(folder / "one" / "m.safetensors", one)
    write(folder / "other" / "m.safetensors", other)
    with Checkpoint.open(folder / "one") as source:
        return compare(build_plan(source, RuleSet()), source, folder / "other", None)


def test_equal(tmp_path: Path) -> None:
    result = compared(tmp_path, t0(), t0())
    assert result.equal and result.tensors == 21 and len(result.files) == 1
    assert result.files[0].source == result.files[0].written


def test_each_kind_of_difference_is_named(tmp_path: Path) -> None:
    one = {"same": const(1, 2), "bytes": iota(4), "shape": iota(4), "dtype": iota(2), "gone": iota(2)}
    other = {**one, "bytes": iota(4) + np.float32(0.5), "shape": iota(2, 2), "dtype": iota(2).astype(np.int32)}
    other["new"] = other.pop("gone")
    result = compared(tmp_path, one, other)
    assert {each.name: each.how for each in result.differences} == {
        "bytes": "byte 3 differs",
        "shape": "F32 [4] became F32 [2, 2]",
        "dtype": "F32 [2] became I32 [2]",
        "gone": "it is not there",
        "new": "it is new",
    }
    assert not result.equal and result.to_json()["tensors_equal"] == 0 + 5 - 5


def test_the_same_tensors_in_another_order_are_another_file(tmp_path: Path) -> None:
    result = compared(tmp_path, {"a": iota(2), "b": iota(3)}, {"b": iota(3), "a": iota(2)})
    assert not result.differences and not result.equal


@given(st.integers(1, 40), st.data())
def test_the_first_byte_that_differs_is_found(length: int, data: st.DataObject) -> None:
    first, second = bytearray(length), bytearray(length)
    places = data.draw(st.sets(st.integers(0, length - 1), min_size=1))
    for place in places:
        second[place] = 1
    assert verification._first_difference(first, second) == min(places)


def test_a_difference_behind_the_first_block_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "BLOCK", 16)
    changed = iota(20)
    changed[17] = -1
    write(tmp_path / "a.safetensors", {"x": iota(20)})
    write(tmp_path / "b.safetensors", {"x": changed})
    with Checkpoint.open(tmp_path / "a.safetensors") as one, Checkpoint.open(tmp_path / "b.safetensors") as other:
        assert difference(one, one, "x") is None
        found = difference(one, other, "x")
    raw = [array.tobytes() for array in (iota(20), changed)]
    assert found == f"byte {next(i for i in range(80) if raw[0][i] != raw[1][i])} differs"


def test_what_does_not_fit_or_has_no_way_back_is_refused_before_reading(tmp_path: Path) -> None:
    write(tmp_path / "m.safetensors", {"a": iota(2), "b": iota(2)})

    def bar(label: str) -> nullcontext[None]:
        return nullcontext(None)

    with Checkpoint.open(tmp_path) as source:
        with pytest.raises(PlanError):
            verify(build_plan(source, [WeightRenaming("a", "b")]), tmp_path, bar)
        lossy = build_plan(source, [], None)
        assert verify(lossy, tmp_path, bar).equal
    assert issubclass(NotInvertible, PlanError)


@pytest.mark.parametrize("sharded", [False, True])
def test_at_the_command_line(cli: Cli, tmp_path: Path, sharded: bool) -> None:
    path = tmp_path / "t0"
    if sharded:
        write_sharded(path, halves(t0()))
        (path / "config.json").write_text(json.dumps(T0_CONFIG))
    else:
        checkpoint(path)
    work = tmp_path / "work"
    work.mkdir()
    ran = cli("verify", path, "--workdir", work)
    assert ran.code == 0 and "21 of 21 tensors byte-equal" in ran.out
    assert ran.out.count("the same as written") == (3 if sharded else 1)
    assert list(work.iterdir()) == []


def test_experts_are_stacked_and_come_back(cli: Cli, tmp_path: Path) -> None:
    ran = cli("verify", checkpoint(tmp_path / "moe", tm(3), {"model_type": "mixtral"}), "--json")
    assert ran.code == 0 and ran.data["equal"] and ran.data["tensors_equal"] == 9


def test_a_difference_is_1_and_named(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule makes one, so a comparison that is told of one stands in."""
    monkeypatch.setattr(verification, "difference", lambda one, other, name: "byte 7 differs")
    ran = cli("verify", checkpoint(tmp_path / "t0"))
    assert ran.code == 1 and "0 of 21 tensors byte-equal" in ran.out
    assert ran.out.count("byte 7 differs") == 10 and "... and 11 more (--json lists all)" in ran.out
    data = cli("verify", tmp_path / "t0", "--json").data
    assert data["equal"] is False and len(data["differences"]) == 21
