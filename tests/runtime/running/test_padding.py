"""Rows of a padded vocabulary, which no token leads to: written back where a layout has them, else named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import filled
from tests.runtime.converting.test_conversion import arrays_of
from tests.runtime.support import Cli, checkpoint

CONFIG = {"model_type": "inkling2_text", "vocab_size": 8, "unpadded_vocab_size": 5}
HEAD, PARAMETER = "model.llm.unembed.weight", "lm_head.weight"


def padded(folder: Path) -> np.ndarray:
    file = filled({HEAD: (8, 2), "model.llm.norm.weight": (2,)})
    checkpoint(folder, file, CONFIG)
    return file[HEAD]


def test_a_layout_without_padding_says_which_rows_it_lacks(cli: Cli, tmp_path: Path) -> None:
    head = padded(tmp_path / "in")
    ran = cli("convert", tmp_path / "in", tmp_path / "out", "--layout", "canonical")
    assert ran.code == 0
    assert f"not in this layout: F32 [3, 2] of {HEAD}, beside {PARAMETER} [" in ran.out
    assert np.array_equal(np.array(arrays_of(tmp_path / "out")[PARAMETER]), head[:5])


@pytest.mark.parametrize("dtype", [None, "bf16", "f16"])
def test_a_layout_with_padding_has_the_rows_of_the_source(cli: Cli, tmp_path: Path, dtype: str | None) -> None:
    head = padded(tmp_path / "in")
    ran = cli("convert", tmp_path / "in", tmp_path / "out", "--layout", "hf", *(["--dtype", dtype] if dtype else []))
    assert ran.code == 0 and "not in this layout" not in ran.out
    found = arrays_of(tmp_path / "out")[HEAD]
    wanted = np.array(found) if dtype is None else np.array(found.astype(_float32()))
    assert wanted.shape == head.shape and np.allclose(wanted, head, atol=0.02) and wanted[5:].any()


def _float32() -> object:
    import mlx.core as mx

    return mx.float32
