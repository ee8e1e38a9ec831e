"""Adapters of other dtypes than floats that can be computed with are refused on every route, by every name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.test_adapter_load import Q, adapter, pair
from tests.engine.raw_files import entry
from tests.engine.raw_files import write as write_raw
from tests.runtime.models import write_model
from tests.runtime.support import Cli
from weightloom.engine import PlanError
from weightloom.runtime import Fusing, convert_adapter, load

BYTES = {"F8_E4M3": 1, "F8_E5M2": 1, "U8": 1, "BOOL": 1, "I32": 4, "F64": 8}


def coded(folder: Path, dtype: str, names: dict[str, tuple[int, int]]) -> Path:
    """An adapter whose tensors are zeros of a dtype."""
    made, header, start = adapter(folder, pair(), modules_to_save=["lm_head"]), {}, 0
    for name, shape in names.items():
        end = start + BYTES[dtype] * shape[0] * shape[1]
        header[name], start = entry(dtype, list(shape), start, end), end
    write_raw(made / "adapter_model.safetensors", header, bytes(start))
    return made


@pytest.mark.case("C80")
@pytest.mark.parametrize("dtype", BYTES)
def test_codes_integers_and_doubles_are_no_factors(dtype: str, tmp_path: Path, cli: Cli) -> None:
    """Codes would be taken for their bit patterns, doubles for bytes, as soon as shapes fit."""
    base = write_model(tmp_path / "base", "llama")
    names = {f"{Q}.lora_A.weight": (2, 32), f"{Q}.lora_B.weight": (32, 2)}
    made = coded(tmp_path / "lora", dtype, names)
    said = rf"lora_A\.model\.layers\.0\.self_attn\.q_proj\.weight: {dtype} \[2, 32\]; expected one of F16, BF16, F32"
    for given in (made, Fusing(made)):
        with pytest.raises(PlanError, match=said) as caught:
            load(base, adapter=given)
        assert "lora_B.model.layers.0.self_attn.q_proj.weight" in str(caught.value)
    with pytest.raises(PlanError, match=said):
        convert_adapter(made, tmp_path / "written", form="mlx", base=base)
    assert cli("convert", base, tmp_path / "fused", "--adapter", made).code == 1
    assert not (tmp_path / "written").exists() and not (tmp_path / "fused").exists()


@pytest.mark.case("C63")
@pytest.mark.parametrize("dtype", ["F64", "I32", "F8_E4M3"])
def test_nor_do_they_replace_a_parameter(dtype: str, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    vocabulary = (64, 32)
    made = coded(tmp_path / "lora", dtype, {"base_model.model.lm_head.weight": vocabulary})
    with pytest.raises(PlanError, match=rf"whole\.lm_head\.weight: {dtype} \[64, 32\]; expected one of"):
        load(base, adapter=made)
