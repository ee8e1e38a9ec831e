"""What a tester from outside found: each with the smallest input that showed it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from weightloom.engine import Checkpoint, PlanError, RuleError, TensorSpec, Tie, WeightRenaming, build_plan
from weightloom.runtime.cli import main


def dense(folder: Path, tied: bool, prefix: str = "model.", **more: object) -> Path:
    """The dense fixture T0 of one layer, with a head in the file."""
    from safetensors.numpy import save_file

    shapes = {f"layers.0.self_attn.{n}_proj.weight": (8 if n in "qo" else 4, 8) for n in "qkvo"}
    shapes |= {f"layers.0.mlp.{n}_proj.weight": (12, 8) for n in ("gate", "up")}
    shapes |= {"layers.0.mlp.down_proj.weight": (8, 12), "embed_tokens.weight": (16, 8), "norm.weight": (8,)}
    shapes |= {f"layers.0.{n}_layernorm.weight": (8,) for n in ("input", "post_attention")}
    tensors = {prefix + name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    tensors["lm_head.weight"] = np.ones((16, 8), np.float32)
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 2,
        "vocab_size": 16,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": tied,
        **more,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.case("C29")
def test_c29_a_second_copy_of_a_tied_head_that_the_model_has_no_place_for(tmp_path: Path) -> None:
    import weightloom as wl

    path = dense(tmp_path / "t0", tied=True)
    m = wl.load(path)
    assert [record.parameter for record in m.report.tied] == ["lm_head.weight"]
    m.save(tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
    assert main(["verify", str(path)]) == 0


def test_two_ends_that_differ_are_named_though_one_is_no_parameter() -> None:
    arrays = {"emb.weight": mx.ones((2, 2)), "head.weight": mx.zeros((2, 2))}
    params = {"emb.weight": TensorSpec("F32", (2, 2))}
    plan = build_plan(Checkpoint.from_arrays(arrays), [Tie("^head", "emb")], params)
    with pytest.raises(PlanError, match=r"head\.weight and emb\.weight differ"):
        plan.load()


def test_a_conversion_refuses_what_would_not_load(tmp_path: Path) -> None:
    path = dense(tmp_path / "t0", tied=False, prefix="net.")
    assert main(["plan", str(path)]) == 1
    assert main(["convert", str(path), str(tmp_path / "out"), "--layout", "hf"]) == 1
    assert not (tmp_path / "out").exists()


def test_a_mismatch_shows_both_shapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dense(tmp_path / "t0", tied=False, intermediate_size=10)
    assert main(["plan", str(path)]) == 1
    assert "F32 [12, 8]; expected F32 [10, 8]" in capsys.readouterr().out


def test_a_condition_may_be_a_function() -> None:
    def wanted(config: dict[str, object], metadata: dict[str, str]) -> bool:
        return config.get("new") is True and metadata.get("format") == "pt"

    checkpoint = Checkpoint.from_specs({"a": TensorSpec("F32", (1,))}, {"format": "pt"})
    rules = [WeightRenaming("a", "b", when=wanted), WeightRenaming("b", "c", when=lambda config: config["x"])]
    assert set(build_plan(checkpoint, rules, config={"new": True, "x": True}).params) == {"c"}
    with pytest.raises(RuleError, match="KeyError"):
        build_plan(checkpoint, rules, config={"new": True})
    with pytest.raises(RuleError, match="when is 3"):
        WeightRenaming("a", "b", when=3)


def test_a_config_that_is_a_pipe_does_not_hang(tmp_path: Path) -> None:
    path = dense(tmp_path / "t0", tied=False)
    (path / "config.json").unlink()
    os.mkfifo(path / "config.json")
    assert main(["inspect", str(path)]) == 1


def test_a_base_model_is_planned_by_the_rules_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dense(tmp_path / "t0", tied=False, architectures=["CohereModel"], model_type="cohere")
    assert main(["plan", str(path)]) == 0
    assert "no CohereModel" in capsys.readouterr().out


def test_gguf_is_no_layout_to_write(tmp_path: Path) -> None:
    path = dense(tmp_path / "t0", tied=False)
    assert main(["convert", str(path), str(tmp_path / "out"), "--layout", "gguf"]) == 2
    assert not (tmp_path / "out").exists()


def test_a_model_is_saved_over_its_own_files_again_and_again(tmp_path: Path) -> None:
    import weightloom as wl

    path = dense(tmp_path / "t0", tied=False)
    m = wl.load(path)
    m.save(path, overwrite=True)
    m.model.model.norm.weight = m.model.model.norm.weight * 2
    m.save(path, overwrite=True)
    m.save(tmp_path / "copy")
    assert wl.load(path).model.model.norm.weight.tolist() == [2.0] * 8
    assert (tmp_path / "copy/model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
