"""A trained GGUF as an MLX checkpoint, packed as it is or anew in 4 bits: mlx-lm loads it and gives the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests import smollm2
from tests.runtime.quantizing.models import arrays_in, config_in
from weightloom.rules.recipe_file import find_recipe
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.quantizing.wish import Quantizing

pytestmark = [pytest.mark.oracle, pytest.mark.real, pytest.mark.filterwarnings("ignore")]
IDS = [[504, 3575, 282, 4649, 314]]


@pytest.fixture(scope="module")
def source(request: pytest.FixtureRequest) -> Path:
    return smollm2.fetch(request.config.cache.mkdir("smollm2"))


def assert_same_logits(folder: Path) -> None:
    from mlx_lm.utils import load_model

    peer: Any = load_model(folder)[0]
    # It computes in the dtype of the scales, float16; here they are widened, which is exact.
    peer.set_dtype(mx.float32)
    found, expected = (np.array(model(mx.array(IDS))) for model in (wl.load(folder).model, peer))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
    assert np.abs(expected).max() > 10


def test_its_triples_are_kept(source: Path, tmp_path: Path) -> None:
    convert(source, Order(tmp_path / "out", "mlx"), Wish())
    section = config_in(tmp_path / "out")["quantization"]
    assert section == {"group_size": 32, "bits": 4, "model.embed_tokens": {"group_size": 32, "bits": 8}}
    assert_same_logits(tmp_path / "out")


def test_in_four_bits_of_mlx(source: Path, tmp_path: Path) -> None:
    recipe = Quantizing(find_recipe("4bit"), unpack=True)
    done = convert(source, Order(tmp_path / "out", quantizing=recipe), Wish())
    assert "quantized: 211 modules to 4 bits in groups of 64 (affine)" in done.notes
    assert config_in(tmp_path / "out")["quantization"] == {"group_size": 64, "bits": 4, "mode": "affine"}
    assert sum(array.dtype == mx.uint32 for array in arrays_in(tmp_path / "out").values()) == 211
    assert_same_logits(tmp_path / "out")
