"""Canonical is Transformers' form, also of what a module has in another: matrices of GPT-2, experts of gpt-oss."""

from pathlib import Path

import pytest

from tests.families.all import FAMILIES
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.testing import Sample
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.conformance.comparing import assert_same_arrays
from weightloom.runtime.conformance.subject import make_subject
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load
from weightloom.runtime.saving.order import CANONICAL


@pytest.mark.parametrize("model_type", ["gpt2", "gpt_oss"])
def test_what_is_canonical_loads_with_the_same_parameters(model_type: str, tmp_path: Path) -> None:
    family = next(each for each in FAMILIES if each.model_type == model_type)
    subject = make_subject(Sample(model_type, family.config(family.cases[0])), tmp_path)
    convert(subject.folder, Order(tmp_path / "canonical", CANONICAL), Wish())
    assert_same_arrays(parameters(load(tmp_path / "canonical").model), subject.params)
