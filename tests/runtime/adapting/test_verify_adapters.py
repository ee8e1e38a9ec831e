"""verify --adapter: an adapter is held against the model, and its files come back byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.test_adapter_load import ATTENTION, adapter, pair
from tests.runtime.adapting.test_fusing_packed import in_four_bits
from tests.runtime.adapting.test_mlx_adapters import experts, mlx_adapter
from tests.runtime.adapting.test_writing import peft_experts
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli


def test_files_of_both_formats_come_back(cli: Cli, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "mixtral")
    made = adapter(tmp_path / "one", peft_experts() | pair()), mlx_adapter(tmp_path / "two", experts())
    asked = [word for each in made for word in ("--adapter", f"{each}:0.5")]
    done = cli("verify", base, *asked, "--json")
    assert done.code == 0 and done.data["equal"] is True
    peft, mlx = done.data["adapters"]
    assert (peft["path"], peft["scale"], peft["changes"], peft["replaced"]) == (str(made[0]), 0.5, 3, 0)
    assert peft["equal"] is mlx["equal"] is True and mlx["changes"] == 2
    said = cli("verify", base, *asked)
    assert f"{made[0]}: 3 parameters changed, 0 replaced" in said.out


@pytest.mark.case("C59")
def test_factors_of_a_stack_come_back(cli: Cli, tmp_path: Path) -> None:
    """C59: folded as they were."""
    from tests.cases.fixtures import filled

    place = "base_model.model.model.layers.1.mlp.experts"
    shapes = {f"{place}.lora_A.weight": (4 * 2, 32), f"{place}.lora_B.weight": (48, 2 * 4)}
    made = adapter(tmp_path / "one", filled(shapes, seed=3), target_parameters=["mlp.experts.gate_up_proj"])
    done = cli("verify", write_model(tmp_path / "base", "mixtral"), "--adapter", made, "--json")
    assert done.code == 0 and done.data["adapters"][0]["equal"] is True


def test_on_a_packed_base(cli: Cli, tmp_path: Path) -> None:
    plain = write_model(tmp_path / "plain", "llama", config_of("llama"))
    base = in_four_bits(plain, tmp_path / "packed")
    done = cli("verify", base, "--adapter", adapter(tmp_path / "one", pair()), "--json")
    assert done.code == 0 and done.data["adapters"][0]["changes"] == 1


@pytest.mark.case("C61")
def test_what_does_not_fit_is_named(cli: Cli, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    wrong = adapter(tmp_path / "one", pair(f"{ATTENTION}.qq_proj"))
    refused = cli("verify", base, "--adapter", wrong)
    assert refused.code == 1 and "qq_proj.lora_A" in refused.err
    missing = cli("verify", base, "--adapter", f"{tmp_path / 'missing'}:0.5")
    assert missing.code == 2 and str(tmp_path / "missing") in missing.err
    assert cli("verify", base, "--adapter", f"{wrong}:nan").code == 2
