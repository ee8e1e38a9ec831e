"""Every family that mlx-lm and the reference implementation share is compared, or it is said why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.oracle.mlx_layouts.families import JOBS

pytestmark = [pytest.mark.oracle, pytest.mark.sample]

NOT_COMPARED = {
    "bitnet": "its products are Metal's alone: test_bitnet.py has its bytes",
    "minimax": "mlx-lm's minimax is MiniMax-M2; the reference implementation's is Text-01",
    "pixtral": "a vision tower there, a whole model in mlx-lm",
    "step3p5": "the reference implementation has no model with a head: test_step3p5.py has it",
}


def test_every_shared_family_is_compared() -> None:
    import mlx_lm.models
    from mlx_lm.utils import MODEL_REMAPPING
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    files = (path for folder in mlx_lm.models.__path__ for path in Path(folder).glob("*.py"))
    models = {path.stem for path in files if re.search(r"^class Model\(", path.read_text(), re.MULTILINE)}
    shared = (models | set(MODEL_REMAPPING)) & set(CONFIG_MAPPING_NAMES)
    compared = {job.key for job in JOBS}
    assert sorted(shared - compared) == sorted(NOT_COMPARED)
