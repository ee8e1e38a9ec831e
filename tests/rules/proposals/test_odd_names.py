"""Names of any characters: what is proposed for them is a file that reads back, and no tensor goes uncounted."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import TensorSpec
from weightloom.rules.parse import parse_rules
from weightloom.rules.proposing.propose import propose
from weightloom.rules.proposing.quoting import commented, quoted
from weightloom.rules.proposing.templates import templates_of
from weightloom.rules.proposing.writing import rule_text

ODD = [
    "li\nne",
    "c\rr",
    "n\x85l",
    "l\u2028s",
    "e\x1b[31m",
    "n\x00l",
    "d\x7fl",
    "r\u202el",
    "b\ufffeb",
    "it's",
    "#",
    "*",
    "y" * 3000,
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def listed(*names: str) -> dict[str, TensorSpec]:
    return {name: TensorSpec("F32", (3, 5)) for name in names}


@given(TEXTS)
def test_a_text_in_quotes_reads_back(text: str) -> None:
    assert yaml.load(f"a: {quoted(text)}", Loader=yaml.BaseLoader) == {"a": text}


@given(TEXTS)
def test_a_comment_stays_on_its_line(text: str) -> None:
    assert yaml.load(f"# {commented(text)}\na: b", Loader=yaml.BaseLoader) == {"a": "b"}


@given(st.lists(st.text("017*.a", min_size=1, max_size=7), unique=True, min_size=1, max_size=12))
def test_templates_have_each_name_once(names: list[str]) -> None:
    found = [name for template in templates_of(listed(*names)) for name in template.names]
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("odd", ODD)
def test_a_proposal_reads_back_whatever_names_are(odd: str) -> None:
    tensors = listed(f"{odd}.query.weight", odd, f"{odd}.0.left")
    proposal = propose(tensors, listed("attn.q_proj.weight"), {})
    read = parse_rules(rule_text(proposal, "llama", "hf", ["llama"], "").encode(), "proposed.yaml")
    layout = read.layout("hf")
    assert layout is not None and len(layout.items) == len(proposal.rules)
    named = {name for link in proposal.links for name in link.names}
    assert named | {name for template in proposal.left for name in template.names} == set(tensors)


def test_an_odd_name_is_matched_where_its_words_are_known() -> None:
    proposal = propose(listed("li\nne.query.weight"), listed("attn.q_proj.weight"), {})
    assert proposal.matched == 1 and not proposal.left


def test_a_number_that_is_written_with_zeros_is_not_another() -> None:
    tensors = listed("h.0.query.weight", "h.1.query.weight", "h.00.query.weight")
    proposal = propose(tensors, listed("h.0.q_proj.weight", "h.1.q_proj.weight"), {})
    assert [template.shown for template in proposal.left] == ["h.00.query.weight"]


def test_a_number_of_any_length_is_read() -> None:
    long = f"a.{'9' * 5000}.w"
    proposal = propose(listed("query.weight", long), listed("q_proj.weight"), {})
    assert [template.shown for template in proposal.left] == [long]
