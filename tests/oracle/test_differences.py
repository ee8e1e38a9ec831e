"""Where the reference implementation takes what it is given in silence, and we do not; or refuses with less said.

Each test states what it does, so that a release that does otherwise is noticed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import peer
from tests.oracle.conftest import Saved
from tests.oracle.peer import Held
from weightloom.engine import PlanError

pytestmark = [pytest.mark.oracle, pytest.mark.sample, pytest.mark.filterwarnings("ignore")]


def zeros(tensors: Held) -> Held:
    return {name: (spec, bytes(len(data))) for name, (spec, data) in tensors.items()}


def refused(name: str, directory: Path, strict: bool = True) -> str:
    with pytest.raises(PlanError) as caught:
        peer.plan_for(name, "float32", directory).load(strict=strict)
    return str(caught.value)


def loads_in_silence(name: str, directory: Path) -> Any:
    model, info = peer.load(name, directory)
    assert peer.misfits(info) == {}
    return model.state_dict()


def test_numbers_of_experts_with_gaps(saved: Saved, tmp_path: Path) -> None:
    """There the experts 0, 2, 3, 9 land in the places 0 to 3."""
    directory = saved("mixtral", "float32", False)
    other = {"0": "0", "1": "2", "2": "3", "3": "9"}
    tensors = {
        re.sub(r"experts\.(\d)", lambda found: f"experts.{other[found[1]]}", name): held
        for name, held in peer.tensors_in(directory).items()
    }
    written = peer.write(tensors, tmp_path / "model", peer.config_of(directory))
    loads_in_silence("mixtral", written)
    assert "no index 1" in refused("mixtral", written, strict=False)


def test_two_names_for_one_parameter(saved: Saved, tmp_path: Path) -> None:
    """There the first in sorted order counts."""
    directory = saved("bert_mlm", "float32", False)
    tensors = peer.tensors_in(directory)
    old = {n.replace("LayerNorm.weight", "LayerNorm.gamma"): h for n, h in tensors.items() if "LayerNorm.weight" in n}
    written = peer.write({**tensors, **zeros(old)}, tmp_path / "model", peer.config_of(directory))
    state = loads_in_silence("bert_mlm", written)
    assert not state["bert.embeddings.LayerNorm.weight"].any()
    assert "two sources for one parameter" in refused("bert_mlm", written, strict=False)


def test_both_layouts_of_the_experts_together(saved: Saved, tmp_path: Path) -> None:
    """There an attribute without a name is missed."""
    directory = saved("mixtral", "float32", False)
    stacked = {n: h for n, h in peer.converted_tensors("mixtral", "float32").items() if ".experts." in n}
    tensors = {**peer.tensors_in(directory), **stacked}
    written = peer.write(tensors, tmp_path / "model", peer.config_of(directory))
    with pytest.raises(AttributeError):
        peer.load("mixtral", written)
    assert "two sources for one parameter" in refused("mixtral", written)


def test_a_tie_with_two_different_ends(saved: Saved, tmp_path: Path) -> None:
    """There both are kept, apart, though the config says that they are one, and nothing is said."""
    directory = saved("llama_tied", "float32", False)
    tensors = peer.tensors_in(directory)
    head = zeros({"lm_head.weight": tensors["model.embed_tokens.weight"]})
    written = peer.write({**tensors, **head}, tmp_path / "model", peer.config_of(directory))
    state = loads_in_silence("llama_tied", written)
    assert not state["lm_head.weight"].any() and state["model.embed_tokens.weight"].any()
    assert "lm_head.weight and model.embed_tokens.weight differ" in refused("llama_tied", written)


def test_a_missing_head(saved: Saved, tmp_path: Path) -> None:
    """There it is made up, with a warning."""
    directory = saved("llama", "float32", False)
    tensors = peer.tensors_in(directory)
    del tensors["lm_head.weight"]
    written = peer.write(tensors, tmp_path / "model", peer.config_of(directory))
    assert peer.misfits(peer.load("llama", written)[1]) == {"missing_keys": ["lm_head.weight"]}
    assert "lm_head.weight" in refused("llama", written, strict=False)


def test_a_base_model_in_a_head_model(saved: Saved, tmp_path: Path) -> None:
    """The same names are missing and spare there and here; here even a lenient load wants a head."""
    head, base = saved("bert_mlm", "float32", False), saved("bert", "float32", False)
    written = peer.write(peer.tensors_in(base), tmp_path / "model", peer.config_of(head))
    info = peer.load("bert_mlm", written)[1]
    report = peer.plan_for("bert_mlm", "float32", written).report
    assert set(report.missing) == set(info["missing_keys"])
    assert set(report.unexpected) == set(info["unexpected_keys"])
    assert "cls.predictions" in refused("bert_mlm", written, strict=False)


def test_a_head_model_in_a_base_model(saved: Saved, tmp_path: Path) -> None:
    """The same names are missing and spare there and here."""
    head, base = saved("bert_mlm", "float32", False), saved("bert", "float32", False)
    written = peer.write(peer.tensors_in(head), tmp_path / "model", peer.config_of(base))
    info = peer.load("bert", written)[1]
    report = peer.plan_for("bert", "float32", written).report
    assert set(report.missing) == set(info["missing_keys"])
    assert set(report.unexpected) == set(info["unexpected_keys"])
