"""The committed references are what the reference implementation gives today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.reference import FOLDER, reference_paths, reference_text
from tests.oracle.cases import each_case
from tests.oracle.models import CASES
from tests.oracle.references import FORMS, make_reference

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


@each_case
def test_a_reference_comes_out_as_it_is_committed(name: str, tmp_path: Path) -> None:
    assert reference_text(make_reference(name, tmp_path)) == (FOLDER / f"{name}.json").read_text()


@pytest.mark.sample
def test_each_case_has_a_reference_and_each_reference_a_case() -> None:
    assert set(FORMS) == set(CASES) == {path.stem for path in reference_paths()}
