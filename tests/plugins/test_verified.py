"""Each architecture that comes with the package says what its answers were compared with, as the families are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.families.all import FAMILIES
from tests.families.family import Family
from tests.guards import ROOT
from weightloom.plugins import PluginManager
from weightloom.plugins.architecture import OURS, Architecture

MANAGER = PluginManager()


def shipped() -> Iterator[Architecture]:
    for model_type in MANAGER.model_types():
        yield from (each for each in MANAGER.architectures(model_type) if each.source == OURS)


def served_by(family: Family) -> Architecture:
    offered = [each for each in MANAGER.architectures(family.model_type) if each.task == family.task]
    return next((each for each in offered if family.class_name in each.class_names), offered[0])


def reference(family: Family) -> tuple[str, str]:
    if family.peer == "mlx_lm":
        return "mlx-lm 0.32.2", family.model_type
    return "Transformers 5.24", family.relaid or family.class_name


def test_each_says_how_it_was_verified() -> None:
    assert not [each.name for each in shipped() if not each.verified]


def test_what_is_said_is_what_the_families_are_compared_with() -> None:
    compared = {served_by(family).name for family in FAMILIES}
    for family in FAMILIES:
        said = served_by(family).verified
        assert all(part in said for part in reference(family)), f"{family.name}: {said}"
    formulas = {each.name for each in shipped() if each.verified.startswith("formulas of ")}
    assert {each.name for each in shipped()} == compared | formulas


def test_the_versions_are_those_that_are_installed_for_it() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "transformers==5.24." in text and "mlx-lm==0.32.2" in text
    versions = {found for each in shipped() for found in re.findall(r"(?:Transformers|mlx-lm) [\d.]+", each.verified)}
    assert versions <= {"Transformers 5.24", "mlx-lm 0.32.2"}
