"""`weightloom rules new`: what it proposes is a file that loads, and says what is left to decide."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import t0
from tests.runtime.quantizing.models import packable
from tests.runtime.support import T0_CONFIG, Cli, checkpoint
from weightloom.plugins import PluginManager, param_specs
from weightloom.rules import lint_rules

# Names as the first Llama files had them.
NAMES = {
    "model.embed_tokens": "tok_embeddings",
    "model.norm": "norm",
    "lm_head": "output",
    "model.layers": "layers",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


def renamed(name: str) -> str:
    for old, new in NAMES.items():
        name = name.replace(old, new)
    return name


def other_names(folder: Path, **config: object) -> Path:
    return checkpoint(folder, {renamed(name): array for name, array in t0().items()}, {**T0_CONFIG, **config})


def test_a_file_is_proposed_and_loads(cli: Cli, tmp_path: Path) -> None:
    path, file = other_names(tmp_path), tmp_path / "mine.yaml"
    ran = cli("rules", "new", path, "-o", file)
    assert ran.code == 1 and ran.out == ""
    assert "21 of 21 tensors (100.0%)" in ran.err and "would load  yes" in ran.err
    assert "layers.*.attention.wq.weight" in ran.err
    assert lint_rules(file) == []
    assert "# To decide: rows of queries and keys" in file.read_text()
    planned = cli("plan", path, "--rules", file)
    assert planned.code == 0, planned.out


def test_it_goes_to_standard_output(cli: Cli, tmp_path: Path) -> None:
    ran = cli("rules", "new", other_names(tmp_path), "--quiet")
    assert ran.err == ""
    assert "- rename: {from: '\\.feed_forward\\.w1\\.', to: '.mlp.gate_proj.'}" in ran.out


def test_as_json(cli: Cli, tmp_path: Path) -> None:
    data = cli("rules", "new", other_names(tmp_path), "--json").data
    assert (data["schema"], data["matched"], data["tensors"], data["settled"]) == (1, 21, 21, False)
    (q,) = [each for each in data["matches"] if each["tensors"] == ["layers.*.attention.wq.weight"]]
    assert q["parameters"] == ["model.layers.*.self_attn.q_proj.weight"] and q["to_decide"]
    assert data["would_load"] is True and data["left"] == data["wanted"] == []


def test_nothing_is_proposed_where_nothing_differs(cli: Cli, tmp_path: Path) -> None:
    ran = cli("rules", "new", checkpoint(tmp_path))
    assert ran.code == 0
    assert "rules: []" in ran.out


def test_an_architecture_is_named_where_the_config_names_none(cli: Cli, tmp_path: Path) -> None:
    path = other_names(tmp_path, model_type="nobodys", architectures=["Nobodys"])
    refused = cli("rules", "new", path)
    assert refused.code == 2 and "--arch" in refused.err
    ran = cli("rules", "new", path, "--arch", "llama")
    assert "would load  yes" in ran.err
    assert "model_types: [llama]" in ran.out


def test_a_file_is_not_replaced_unasked(cli: Cli, tmp_path: Path) -> None:
    path, file = other_names(tmp_path), tmp_path / "mine.yaml"
    file.write_text("mine")
    ran = cli("rules", "new", path, "-o", file)
    assert ran.code == 2 and "--overwrite" in ran.err
    assert file.read_text() == "mine"
    assert cli("rules", "new", path, "-o", file, "--overwrite").code == 1
    assert "schema: 1" in file.read_text()


def test_only_a_file_is_replaced_and_a_link_stays_one(cli: Cli, tmp_path: Path) -> None:
    path, pipe, link = other_names(tmp_path), tmp_path / "pipe.yaml", tmp_path / "link.yaml"
    os.mkfifo(pipe)
    ran = cli("rules", "new", path, "-o", pipe, "--overwrite")
    assert ran.code == 2 and "not a file" in ran.err
    assert pipe.is_fifo()
    (tmp_path / "far.yaml").write_text("old")
    link.symlink_to("far.yaml")
    assert cli("rules", "new", path, "-o", link, "--overwrite").code == 1
    assert link.is_symlink() and "schema: 1" in (tmp_path / "far.yaml").read_text()


def test_no_file_of_another_kind_is_written_over(cli: Cli, tmp_path: Path) -> None:
    path = other_names(tmp_path)
    config = (path / "config.json").read_bytes()
    ran = cli("rules", "new", path, "-o", path / "config.json", "--overwrite")
    assert ran.code == 2 and "ends in .yaml" in ran.err
    assert (path / "config.json").read_bytes() == config


def test_a_file_that_is_there_is_said_before_anything_is_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    ran = cli("rules", "new", tmp_path / "none", "-o", tmp_path / "mine.yaml")
    assert ran.code == 2 and "--overwrite" in ran.err


@pytest.mark.parametrize("name", ["on", "1.5", "null"])
def test_a_layout_is_called_what_was_asked(cli: Cli, tmp_path: Path, name: str) -> None:
    path, file = other_names(tmp_path), tmp_path / "mine.yaml"
    ran = cli("rules", "new", path, "--layout", name, "-o", file)
    assert ran.code == 1 and "would load  yes" in ran.err
    assert cli("plan", path, "--rules", file, "--layout", name).code == 0


@pytest.mark.parametrize("name", ["a: b", "", "my layout", "x" * 81])
def test_a_layout_that_no_file_can_have_is_refused(cli: Cli, tmp_path: Path, name: str) -> None:
    ran = cli("rules", "new", other_names(tmp_path), "--layout", name)
    assert ran.code == 2 and "not a layout's name" in ran.err


def test_what_has_no_place_is_listed(cli: Cli, tmp_path: Path) -> None:
    arrays = {renamed(name): array for name, array in t0().items()}
    arrays["rope.freqs"] = arrays.pop("norm.weight")[:3]
    ran = cli("rules", "new", checkpoint(tmp_path, arrays))
    assert ran.code == 1 and "would load  no" in ran.err
    assert "no parameter for rope.freqs" in ran.err and "no tensor for model.norm.weight" in ran.err
    assert "#   rope.freqs  [3]\n" in ran.out


def test_layers_beyond_the_model_are_said_to_be_left(cli: Cli, tmp_path: Path) -> None:
    arrays = {renamed(name): array for name, array in t0().items()}
    arrays |= {name.replace(".1.", ".2."): array for name, array in arrays.items() if ".1." in name}
    ran = cli("rules", "new", checkpoint(tmp_path, arrays))
    assert "21 of 30 tensors" in ran.err and "drop_layers" in ran.err
    assert "no parameter for layers.2.attention.wo.weight [8, 8]" in ran.err


def test_what_mlx_packed_goes_with_its_scales(cli: Cli, tmp_path: Path) -> None:
    plain = packable(tmp_path / "plain", "mixtral")
    assert cli("convert", plain, tmp_path / "packed", "--layout", "mlx", "--quantize", "4bit").code == 0
    ran = cli("rules", "new", tmp_path / "packed", "-o", tmp_path / "mine.yaml", "--json")
    assert ran.data["would_load"] is True, ran.data["error"]
    text = (tmp_path / "mine.yaml").read_text()
    assert r"\.switch_mlp\.down_proj\.(scales|biases)', to: '.mlp.experts.down_proj_\1'" in text
    assert lint_rules(tmp_path / "mine.yaml") == []


def test_an_architecture_that_rewrites_rules_rewrites_those_that_were_proposed(cli: Cli, tmp_path: Path) -> None:
    """GPT-2's matrices are stored (inputs, outputs); here they are turned, and the module below another name."""
    config = {"model_type": "gpt2", "vocab_size": 20, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
    found = PluginManager().architecture("gpt2")
    specs = param_specs(found.build(found.read_config(config)))
    arrays = {name.replace("transformer.", "net."): np.ones(spec.shape, np.float32) for name, spec in specs.items()}
    path = checkpoint(tmp_path / "gpt2", arrays, config)
    ran = cli("rules", "new", path, "-o", tmp_path / "mine.yaml")
    assert "would load  yes" in ran.err, ran.err
    assert cli("plan", path, "--rules", tmp_path / "mine.yaml", "--layout", "hf").code == 0
