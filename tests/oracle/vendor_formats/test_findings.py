"""Each format: other packages take a weight for the same numbers, it comes back, and mlx-lm loads what it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.vendor_formats.findings import MLX_LM, comes_back, loads_in_mlx_lm, same_numbers
from tests.oracle.vendor_formats.readers import BY_DOCUMENT, READERS
from tests.plugins.formats.vendors import VENDORS, make

pytestmark = pytest.mark.oracle


def test_every_format_is_held_against_another_reader_or_said_not_to_be() -> None:
    assert READERS.keys() | BY_DOCUMENT == VENDORS.keys()
    assert not READERS.keys() & BY_DOCUMENT


@pytest.mark.sample
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", READERS)
def test_other_packages_take_a_weight_for_the_same_numbers(tmp_path: Path, kind: str) -> None:
    pytest.importorskip(READERS[kind].package, reason=f"the extra `formats` has {READERS[kind].package}")
    assert same_numbers(kind, tmp_path)


@pytest.mark.parametrize("kind", VENDORS)
def test_mlx_lm_loads_what_is_made_of_it_and_it_comes_back(tmp_path: Path, kind: str) -> None:
    made = make(tmp_path / "made", "llama", VENDORS[kind], **MLX_LM)
    assert comes_back(made, tmp_path / "back")
    assert loads_in_mlx_lm(made, tmp_path / "mlx")
