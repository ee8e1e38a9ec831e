"""Published FP8 codes with a scale for each block: mlx-lm turns them into floats, and so does our mlx form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle import peer
from tests.oracle.mlx_layouts import check
from tests.oracle.mlx_layouts.experts import EXPERTS
from tests.oracle.mlx_layouts.family import Family
from tests.oracle.mlx_layouts.relaid import codes_in_blocks
from tests.oracle.mlx_layouts.trial import Trial

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# More than one block, and parts of blocks at the edges.
_WIDE = {"hidden_size": 160, "intermediate_size": 144}
_KNOWN = {family.key: family for family in EXPERTS if not family.variant}


@pytest.mark.parametrize(
    ("key", "reads_published"),
    [("deepseek_v3", True), ("minimax_m2", True), ("mimo_v2_flash", True), ("qwen3_moe", False)],
)
def test_codes_become_floats_and_come_back(key: str, reads_published: bool, tmp_path: Path) -> None:
    """mlx-lm itself cannot load codes of qwen3_moe; it loads our form of them."""
    known = _KNOWN[key]
    family = Family(
        key,
        {**known.changes, **_WIDE},
        reads=known.reads,
        relaid=codes_in_blocks,
        dtype="bfloat16",
        reads_published=reads_published,
    )
    trial = Trial(family, tmp_path)
    assert list(check._as_sanitized(trial)) == []
    assert {tensor.dtype for tensor, _ in check._tensors(trial.mlx).values()} == {"BF16"}
    assert "quantization_config" not in peer.config_of(trial.mlx)
    assert list(check._back(trial)) == []
    assert trial.from_theirs.tensors
    _, info = trial.reference(tmp_path / "from_theirs")
    assert not peer.misfits(info)
