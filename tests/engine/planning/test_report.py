"""The report as text: long lists are grouped, and what a line is about stays in it."""

from __future__ import annotations

from weightloom.engine.planning.report import Incomplete, LoadReport


def lacking(layer: int) -> Incomplete:
    return Incomplete(f"layers.{layer}.experts", r"experts\.*.up", (7,), (f"layers.{layer}.experts.up",), "stack")


def test_alike_incomplete_groups_still_name_group_pattern_and_index() -> None:
    heading, line = LoadReport(incomplete=(lacking(3), lacking(4))).lines()
    assert heading == "incomplete: 2"
    assert r"group layers.3.experts: pattern experts\.*.up has no index 7" in line
    assert line.endswith("and others alike, in all x2")


def test_a_lone_incomplete_group_is_shown_as_it_is() -> None:
    _, line = LoadReport(incomplete=(lacking(3),)).lines()
    assert line == f"  {lacking(3)}"


def test_missing_names_are_joined_by_shape() -> None:
    _, line = LoadReport(missing=("layers.0.w", "layers.1.w")).lines()
    assert line == "  layers.*.w x2"
