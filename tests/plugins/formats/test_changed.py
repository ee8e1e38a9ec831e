"""Words that were changed after a load: written where a vendor's form has them, refused by name elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weightloom as wl
from tests.plugins.formats.vendors import VENDORS, make
from weightloom.engine.errors import NotInvertible
from weightloom.plugins.modules.binding import parameters

MODULE = "model.layers.0.mlp.up_proj"


def change_words(model: Any) -> Any:
    """Turn each word's last bit, and give the words."""
    module = dict(model.named_modules())[MODULE]
    module.weight = module.weight ^ 1
    return np.array(module.weight)


@pytest.mark.parametrize(
    "kind",
    ["fp8 blocks", "fp8 rows", "modelopt nvfp4", "compressed int4", "compressed bytes", "gptq", "awq"],
)
def test_without_a_way_back_they_are_refused_before_anything_is_written(tmp_path: Path, kind: str) -> None:
    m = wl.load(make(tmp_path, "llama", VENDORS[kind]).path)
    change_words(m.model)
    with pytest.raises(NotInvertible, match=rf"{MODULE}\.weight is not as it was loaded") as caught:
        m.save(tmp_path / "out")
    assert caught.value.tensor is not None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["compressed mxfp4", "mxfp4"])
def test_with_a_way_back_they_are_what_is_read_again(tmp_path: Path, kind: str) -> None:
    m = wl.load(make(tmp_path, "llama", VENDORS[kind]).path)
    wanted = change_words(m.model)
    m.save(tmp_path / "out")
    found = parameters(wl.load(tmp_path / "out").model)[f"{MODULE}.weight"]
    np.testing.assert_array_equal(np.array(found), wanted)
