"""What docs/explanation/comparison.yaml says of Transformers and of mlx-lm, tried on the releases that it names."""

from __future__ import annotations

import inspect
import json
import re
from importlib.metadata import distribution, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from safetensors import safe_open

from docs.generating import comparison
from tests.runtime.models import config_of, write_model

pytestmark = [pytest.mark.oracle, pytest.mark.sample, pytest.mark.filterwarnings("ignore")]

DATA = comparison.read()
ROWS = {row["about"]: row for row in DATA["rows"]}
LLAMA = config_of("llama", rms_norm_eps=1e-5)


def number(about: str, peer: str) -> int:
    found = re.search(r"\d+", ROWS[about][peer]["says"])
    assert found
    return int(found[0])


def modules() -> list[str]:
    """Give the sources of mlx-lm's models."""
    spec = find_spec("mlx_lm.models")
    assert spec and spec.submodule_search_locations
    files = sorted(Path(spec.submodule_search_locations[0]).glob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    return [text for text in texts if re.search(r"^class Model\(", text, re.MULTILINE)]


@pytest.mark.parametrize("peer", ["transformers", "mlx-lm"])
def test_the_releases_are_those_that_are_named(peer: str) -> None:
    assert version(peer) == DATA[peer]["version"]


def test_model_types() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    assert len(CONFIG_MAPPING_NAMES) == number("model types", "transformers")
    assert len(modules()) == number("model types", "mlx-lm")


def test_mappings() -> None:
    from transformers.core_model_loading import WeightConverter, WeightRenaming

    assert hasattr(WeightConverter, "reverse_transform") and hasattr(WeightRenaming, "reverse_transform")
    assert sum("def sanitize(" in text for text in modules()) == number(
        "the mapping from files to parameters", "mlx-lm"
    )


def test_nobody_else_looks_for_packages() -> None:
    for peer in ("transformers", "mlx-lm"):
        assert {point.group for point in distribution(peer).entry_points} == {"console_scripts"}


def llama(folder: Path) -> Path:
    """Write a tiny Llama with a tensor that no model knows, and with metadata of its own."""
    write_model(folder, "llama", LLAMA)
    file = str(folder / "model.safetensors")
    tensors = {**mx.load(file), "of_nobody.weight": mx.ones((2, 2))}
    mx.eval(tensors)
    mx.save_safetensors(file, tensors, {"format": "pt", "who": "us"})
    return folder


def test_what_transformers_writes_back(tmp_path: Path) -> None:
    from transformers import LlamaForCausalLM

    before = llama(tmp_path / "before")
    LlamaForCausalLM.from_pretrained(before).save_pretrained(tmp_path / "after")
    old, new = (tmp_path / name / "model.safetensors" for name in ("before", "after"))
    assert [safe_open(file, "np").metadata().get("who") for file in (old, new)] == ["us", None]
    assert set(mx.load(str(old))) - set(mx.load(str(new))) == {"of_nobody.weight"}


def test_a_missing_tensor_in_transformers(tmp_path: Path) -> None:
    from transformers import LlamaForCausalLM

    folder = without_a_norm(tmp_path)
    _, said = LlamaForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert set(said["missing_keys"]) == {"model.norm.weight"}


def without_a_norm(folder: Path) -> Path:
    write_model(folder, "llama", LLAMA)
    file = str(folder / "model.safetensors")
    tensors = {name: array for name, array in mx.load(file).items() if name != "model.norm.weight"}
    mx.eval(tensors)
    mx.save_safetensors(file, tensors, {"format": "pt"})
    return folder


def test_misfits_in_mlx_lm(tmp_path: Path) -> None:
    from mlx_lm.utils import load_model

    for folder, name in ((llama(tmp_path / "more"), "of_nobody"), (without_a_norm(tmp_path / "less"), "model.norm")):
        with pytest.raises(ValueError, match=name):
            load_model(folder)


def test_what_mlx_lm_writes_back(tmp_path: Path) -> None:
    from mlx_lm.utils import load_model, save_model

    write_model(tmp_path / "before", "mixtral")
    model, _ = load_model(tmp_path / "before")
    save_model(tmp_path / "after", model)
    old, new = (set(mx.load(str(tmp_path / name / "model.safetensors"))) for name in ("before", "after"))
    assert old - new and new - old


def test_code_of_a_checkpoint_in_mlx_lm(tmp_path: Path) -> None:
    from mlx_lm.utils import load_model

    ran = code(tmp_path, model_file="its_own.py")
    with pytest.raises(ValueError, match="trust_remote_code"):
        load_model(tmp_path)
    assert not ran.exists()
    with pytest.raises(AttributeError):
        load_model(tmp_path, trust_remote_code=True)
    assert ran.exists()


def test_code_of_a_checkpoint_in_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoConfig, dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    ran = code(tmp_path, model_type="its_own", auto_map={"AutoConfig": "its_own.Config"})
    with pytest.raises(ValueError, match="trust_remote_code"):
        AutoConfig.from_pretrained(tmp_path, trust_remote_code=False)
    assert not ran.exists()
    with pytest.raises(AttributeError):
        AutoConfig.from_pretrained(tmp_path, trust_remote_code=True)
    assert ran.exists()


def code(folder: Path, **config: Any) -> Path:
    """Put code into a checkpoint that leaves a file behind where it runs; give that file."""
    write_model(folder, "llama", LLAMA)
    (folder / "config.json").write_text(json.dumps({**LLAMA, **config}), encoding="utf-8")
    (folder / "its_own.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\n", encoding="utf-8")
    return folder / "ran"


def test_quantizers_of_transformers() -> None:
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING

    assert len(AUTO_QUANTIZER_MAPPING) > 20


def test_what_mlx_lm_does_besides() -> None:
    for module in ("lora", "server", "quant.awq", "quant.dwq", "quant.gptq"):
        assert find_spec(f"mlx_lm.{module}")
    cuts = sum("def shard(" in text for text in modules())
    assert cuts == number("one model on several GPUs", "mlx-lm")


def test_what_transformers_does_besides() -> None:
    assert find_spec("transformers.cli.serve")


def test_what_mlx_lm_needs() -> None:
    assert any(line.startswith("transformers") for line in requires("mlx-lm") or ())


def test_both_ask_before_code_runs() -> None:
    from mlx_lm.utils import load_model

    assert inspect.signature(load_model).parameters["trust_remote_code"].default is False
