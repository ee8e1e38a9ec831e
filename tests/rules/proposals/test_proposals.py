"""With a family's own rules hidden, most of them are found again; what is wrong is marked, always."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.families.all import FAMILIES
from tests.rules.proposals.cases import Case, small_cases
from tests.rules.proposals.measuring import SILENT, Measured, measured, share, table
from tests.rules.proposals.spellings import SPELLINGS, Spelling, respelt
from weightloom.rules import lint_rules
from weightloom.rules.proposing.links import Link

# A family for each kind of difference: names alone, experts apart, stacked, fused rows, filters, nothing at all.
SAMPLE = (
    "llama",
    "exaone",
    "bailing_moe",
    "mixtral",
    "qwen3_moe",
    "falcon_mamba",
    "rwkv7",
    "gpt2",
    "internlm2",
    "qwen3_next",
)


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
        assert all(_is_marked(link, each) for link in each.proposal.doubtful)
        file = tmp_path_factory.mktemp("proposed") / "proposed.yaml"
        file.write_text(each.text)
        assert lint_rules(file) == []


def _is_marked(link: Link, found: Measured) -> bool:
    """Say whether the file itself says what is in doubt: above a rule, or below, where no rule changes the name."""
    if link.same:
        return f"      #   {link.sources[0].text}\n" in found.text
    return any(link in rule.own for rule in found.proposal.rules)


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.name)
def test_under_other_names_nothing_is_wrong_in_silence(spelling: Spelling) -> None:
    found = [measured(case) for case in respelt(cases_of(("llama", "qwen3", "gemma2", "starcoder2")), spelling)]
    assert {each.case.family for each in found} == {"llama", "qwen3", "gemma2", "starcoder2"}
    assert not any(each.examples.get(SILENT) for each in found)
    assert share(_sum(found)) >= spelling.share


@pytest.mark.thorough
def test_under_other_names_nothing_is_wrong_in_silence_whatever_the_family() -> None:
    for spelling in SPELLINGS:
        found = [measured(case) for case in respelt(small_cases(), spelling)]
        print("\n" + "\n".join(table(found)))
        assert len(found) > 100
        assert not [(each.case.family, each.examples[SILENT][:3]) for each in found if each.examples.get(SILENT)]
        assert share(_sum(found)) >= spelling.share


@pytest.mark.thorough
def test_of_all_that_ship_most_is_found_again() -> None:
    found = [measured(case) for case in small_cases()]
    print("\n" + "\n".join(table(found)))
    assert len({each.case.family for each in found}) > 80
    assert not [(each.case.family, each.examples[SILENT][:3]) for each in found if each.examples.get(SILENT)]
    assert share(_sum(found)) >= 0.9
    assert share(sum((each.changed for each in found), start=Counter[str]())) >= 0.9


def _sum(found: list[Measured]) -> Counter[str]:
    return sum((each.fates for each in found), start=Counter[str]())
