"""With a family's own rules hidden, most of them are found again; what is wrong is marked, always."""

from __future__ import annotations

import pytest

from tests.families.all import FAMILIES
from tests.rules.proposals.cases import Case, small_cases
from tests.rules.proposals.measuring import SILENT, measured, share, table
from weightloom.rules import lint_rules

# A family for each kind of difference: names alone, experts apart, stacked, fused rows, filters, nothing at all.
SAMPLE = ("llama", "exaone", "bailing_moe", "mixtral", "qwen3_moe", "falcon_mamba", "rwkv7", "gpt2", "internlm2")


def cases_of(names: tuple[str, ...]) -> list[Case]:
    return list(small_cases(family for family in FAMILIES if family.name in names))


@pytest.mark.parametrize("family", SAMPLE)
def test_a_layout_is_found_again(family: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = [measured(case) for case in cases_of((family,))]
    assert {each.case.family for each in found} == {family}
    print("\n".join(table(found)))
    for each in found:
        assert not each.examples.get(SILENT)
        assert share(each.fates) >= 0.75
        file = tmp_path_factory.mktemp("proposed") / "proposed.yaml"
        file.write_text(each.text)
        assert lint_rules(file) == []


@pytest.mark.thorough
def test_of_all_that_ship_most_is_found_again() -> None:
    found = [measured(case) for case in small_cases()]
    print("\n" + "\n".join(table(found)))
    assert len({each.case.family for each in found}) > 80
    assert not [(each.case.family, each.examples[SILENT][:3]) for each in found if each.examples.get(SILENT)]
    assert share(sum((each.fates for each in found), start=type(found[0].fates)())) >= 0.9
    assert share(sum((each.changed for each in found), start=type(found[0].fates)())) >= 0.9
