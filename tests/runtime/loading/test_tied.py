"""C28-C34 through load and save: the flag wherever it is, heads that are there and not, packed ends, multipliers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from tests.cases.fixtures import Arrays, const, names_in, t0, write
from tests.plugins.installed import install
from tests.runtime.choosing.test_text_half import PUBLISHED, TOWERS, whole
from tests.runtime.models import config_of
from tests.runtime.support import T0_CONFIG, Cli, checkpoint
from weightloom.engine import PlanError
from weightloom.engine.planning.report import LoadReport
from weightloom.runtime import load

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
TIED = {**T0_CONFIG, "tie_word_embeddings": True}
WEIGHTS = "model.safetensors"
PARTS = ("weight", "scales", "biases")
TOKENS = mx.array([[1, 5, 9]])
# Models that keep a head of their own, tied or not, and one that has a tower beside it.
MODELS = """
from dataclasses import replace
import mlx.nn as nn
from weightloom.engine import RuleSet, Tie
from weightloom.plugins import hookimpl
from weightloom.plugins.architectures.llama import LLAMA, build, read_llama

class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(64, 8, bias=False)

def with_head(config):
    module = build(config)
    hidden, vocab = config.fields.hidden_size, config.fields.vocab_size
    module.lm_head = nn.Linear(hidden, vocab, bias=False)
    return module

def hearing(config):
    module = with_head(config)
    module.audio = Tower()
    return module

class Scaled(nn.Module):
    # The multipliers act as the model runs, on an embedding and a head that stay one array.
    def __init__(self, config, factors):
        super().__init__()
        self.inner = with_head(config)
        self._embedding, self._head = factors

    def embed(self, tokens):
        return self._embedding * self.inner.model.embed_tokens(tokens)

    def score(self, hidden):
        return self._head * self.inner.lm_head(hidden)

def scaled_config(content):
    return read_llama(content), (content["embedding_multiplier"], content["lm_head_multiplier"])

def nested_config(content):
    return read_llama(content["text_config"])

def tie(flag, path=""):
    end = "^" + path + "lm_head"
    return RuleSet([Tie(end + r"\\.(weight|scales|biases)", path + r"model.embed_tokens.\\1", when=flag)])

def family(name, **changes):
    return replace(LLAMA, name=name, model_types=(name,), class_names=(), **changes)

class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        nested = "text_config.tie_word_embeddings"
        return [
            family("headed", build=with_head, rules=tie("tie_word_embeddings")),
            family("hearing", build=hearing, rules=tie(nested), read_config=nested_config, fields=None),
            family("scaled", build=lambda c: Scaled(*c), read_config=scaled_config, fields=None,
                   rules=tie("tie_word_embeddings", "inner."), base_model_prefix=""),
        ]

PLUGIN = Plugin()
"""
T1: dict[str, Any] = {
    **{"vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2},
    **{"num_key_value_heads": 1, "head_dim": 32, "model_type": "llama", "tie_word_embeddings": True},
}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = dict.fromkeys(("headed", "hearing", "scaled"), "tied_models:PLUGIN")
    install(tmp_path / "site", "tied-models", points, {"tied_models": MODELS})
    monkeypatch.syspath_prepend(tmp_path / "site")


def tied_of(report: LoadReport) -> list[tuple[str, str, bool]]:
    return [(each.parameter, each.other, each.copy) for each in report.tied]


def headless() -> Arrays:
    return {name: array for name, array in t0().items() if name != HEAD}


def assert_saved_as_found(path: Path, place: Path, **options: Any) -> None:
    """The original layout gives the file back, byte for byte; a named layout has one copy."""
    m = load(path, **options)
    m.save(place / "original")
    assert (place / "original" / WEIGHTS).read_bytes() == (path / WEIGHTS).read_bytes()


@pytest.mark.case("C28")
@pytest.mark.parametrize("outer", ["absent", None])
def test_c28_the_flag_of_the_nested_config_counts(tmp_path: Path, outer: object) -> None:
    """C28: no flag outside, true inside, no head: the head is the embedding, and no second copy is written."""
    text = config_of("llama", tie_word_embeddings=True)
    changes = {} if outer == "absent" else {"tie_word_embeddings": outer}
    path = whole(tmp_path / "vlm", PUBLISHED, TOWERS, text_config=text, **changes)
    file = {k: np.array(v) for k, v in mx.load(str(path / WEIGHTS)).items() if "lm_head" not in k}
    write(path / WEIGHTS, file)
    m = load(path, text_only=True)
    hidden = mx.random.normal((1, 2, 32))
    assert mx.allclose(m.model.head(hidden), hidden @ m.model.model.embed_tokens.weight.T).item()
    assert not m.report.missing
    m.save(tmp_path / "out")
    assert names_in(tmp_path / "out") == set(file)


@pytest.mark.case("C28", "C29")
@pytest.mark.parametrize("family", ["llama", "headed"])
def test_c29_a_copy_that_is_equal_is_reported_and_kept(models: None, tmp_path: Path, family: str) -> None:
    """C29. Chosen: the original layout has both copies again, a named one has one."""
    file = t0()
    file[HEAD] = file[EMBEDDING].copy()
    path = checkpoint(tmp_path / "in", file, {**TIED, "model_type": family, "architectures": None})
    m = load(path)
    assert tied_of(m.report) == [(HEAD, EMBEDDING, True)]
    assert "second copy of model.embed_tokens.weight: compared before any is bound" in str(m.report)
    m.save(tmp_path / "named", layout="hf")
    assert names_in(tmp_path / "named") == set(file) - {HEAD}
    assert mx.array_equal(load(tmp_path / "named").model(TOKENS), m.model(TOKENS)).item()
    for number, options in enumerate(({}, {"lazy": True})):
        assert_saved_as_found(path, tmp_path / str(number), **options)


@pytest.mark.case("C31")
@pytest.mark.parametrize("family", ["llama", "headed"])
@pytest.mark.parametrize("lazy", [None, True])
def test_c31_two_different_ends_stop_the_load(models: None, tmp_path: Path, family: str, lazy: bool | None) -> None:
    """C31: embedding 1.0, head 2.0. Chosen: stop and name both; with the flag false 2.0 is the head, and is saved."""
    file = {**t0(), EMBEDDING: const(1.0, 16, 8), HEAD: const(2.0, 16, 8)}
    config = {**TIED, "model_type": family, "architectures": None}
    path = checkpoint(tmp_path / "in", file, config)
    with pytest.raises(PlanError, match=r"lm_head\.weight and model\.embed_tokens\.weight differ") as caught:
        mx.eval(load(path, lazy=lazy).model(TOKENS))
    assert "tie_word_embeddings to false" in str(caught.value)
    checkpoint(path, file, {**config, "tie_word_embeddings": False})
    assert load(path).model.lm_head.weight.tolist() == const(2.0, 16, 8).tolist()
    assert_saved_as_found(path, tmp_path / "out")


@pytest.mark.case("C32")
@pytest.mark.parametrize("strict", [True, False])
def test_c32_no_head_and_no_tie_is_an_error_with_two_ways_out(tmp_path: Path, cli: Cli, strict: bool) -> None:
    """C32: the tensor, the flag that is false, set the flag or supply the tensor; no random head, lenient or not."""
    path = checkpoint(tmp_path, headless(), {**T0_CONFIG, "tie_word_embeddings": False})
    with pytest.raises(PlanError) as caught:
        load(path, strict=strict)
    assert caught.value.tensor == HEAD
    for said in ("tie_word_embeddings = False", "set it in the config", "supply the tensor", EMBEDDING):
        assert said in str(caught.value)
    assert "set it in the config" in cli("plan", path).err
    (tmp_path / "config.json").write_text(json.dumps(TIED))
    assert not load(path).report.missing


def packed(array: np.ndarray[Any, Any], group: int) -> dict[str, np.ndarray[Any, Any]]:
    parts = mx.quantize(mx.array(array), group_size=group, bits=4)
    return {name: np.array(part) for name, part in zip(("weight", "scales", "biases"), parts, strict=True)}


def t1_hearing() -> Arrays:
    chance = np.random.default_rng(7)
    shapes = {f"self_attn.{n}_proj": (rows, 64) for n, rows in (("q", 64), ("k", 32), ("v", 32), ("o", 64))}
    shapes |= {"mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64), "mlp.down_proj": (64, 128)}
    file = {f"model.layers.0.{n}.weight": chance.standard_normal(s, dtype=np.float32) for n, s in shapes.items()}
    file |= {f"model.layers.0.{n}_layernorm.weight": const(1.0, 64) for n in ("input", "post_attention")}
    table = chance.standard_normal((64, 64), dtype=np.float32)
    return {
        **file,
        "model.norm.weight": const(1.0, 64),
        "audio.proj.weight": chance.standard_normal((8, 64), dtype=np.float32),
        **{f"model.embed_tokens.{part}": array for part, array in packed(table, 64).items()},
    }


@pytest.mark.case("C28", "C33")
@pytest.mark.parametrize("lazy", [None, True])
def test_c33_the_tied_head_uses_all_three_packed_tensors(models: None, tmp_path: Path, lazy: bool | None) -> None:
    """C33: the flag is nested, the embedding packed, no head; the dense projection stays dense."""
    file = t1_hearing()
    assert file["model.embed_tokens.weight"].shape == (64, 8) and file["model.embed_tokens.scales"].shape == (64, 1)
    quantization = {"bits": 4, "group_size": 64}
    path = checkpoint(tmp_path / "in", file, {"model_type": "hearing", "text_config": T1, "quantization": quantization})
    m = load(path, lazy=lazy)
    head, table = m.model.lm_head, m.model.model.embed_tokens
    assert isinstance(head, nn.QuantizedLinear) and not isinstance(m.model.audio.proj, nn.QuantizedLinear)
    assert all(head[part] is table[part] for part in ("weight", "scales", "biases"))
    assert [each[:2] for each in tied_of(m.report)] == [
        (f"lm_head.{part}", f"model.embed_tokens.{part}") for part in ("biases", "scales", "weight")
    ]
    hidden = mx.random.normal((1, 3, 64))
    dense = mx.dequantize(table.weight, table.scales, table.biases, group_size=64, bits=4)
    assert mx.allclose(m.model.head(hidden), hidden @ dense.T, atol=1e-4).item()
    for layout in ("original", "hf"):
        m.save(tmp_path / layout, layout=layout)
        assert names_in(tmp_path / layout) == set(file)
    assert_saved_as_found(path, tmp_path / "again", lazy=lazy)


@pytest.mark.case("C30")
@pytest.mark.parametrize("family", ["llama", "headed"])
@pytest.mark.parametrize("tied", [True, False])
def test_c30_a_packed_head_s_three_tensors_go_together(models: None, tmp_path: Path, family: str, tied: bool) -> None:
    """C30: all three are tied and written once; with the flag false all three stay."""
    file = {name: array for name, array in t1_hearing().items() if not name.startswith("audio.")}
    file |= {n.replace("model.embed_tokens", "lm_head"): a.copy() for n, a in file.items() if "embed_tokens" in n}
    quantization = {"bits": 4, "group_size": 64}
    config = {**T1, "model_type": family, "tie_word_embeddings": tied, "quantization": quantization}
    path = checkpoint(tmp_path / "in", file, config)
    m = load(path)
    heads = {name for name in file if name.startswith("lm_head.")}
    assert {each[0] for each in tied_of(m.report)} == (heads if tied else set())
    m.save(tmp_path / "named", layout="hf")
    assert names_in(tmp_path / "named") == set(file) - (heads if tied else set())
    assert_saved_as_found(path, tmp_path / "out")


@pytest.mark.case("C31")
def test_a_packed_embedding_and_a_dense_head_are_two_tensors(models: None, tmp_path: Path) -> None:
    """What is tied cannot be stored in two forms: an error that names both."""
    file = {**t1_hearing(), "lm_head.weight": const(1.0, 64, 64)}
    config = {"model_type": "hearing", "text_config": T1, "quantization": {"bits": 4, "group_size": 64}}
    path = checkpoint(tmp_path / "in", file, config)
    with pytest.raises(PlanError, match=r"lm_head\.weight") as caught:
        load(path)
    assert "as its other end model.embed_tokens.weight has" in str(caught.value)


@pytest.mark.case("C34")
def test_c34_multipliers_act_as_the_model_runs_and_the_bytes_stay(models: None, tmp_path: Path) -> None:
    """C34: embedding 4.0, head 0.5 of one tensor of ones. Chosen: nothing is folded in; 1.0 is saved, once."""
    file = {**headless(), EMBEDDING: const(1.0, 16, 8)}
    file = {f"inner.{name}": array for name, array in file.items()}
    factors = {"embedding_multiplier": 4.0, "lm_head_multiplier": 0.5}
    path = checkpoint(tmp_path / "in", file, {**TIED, **factors, "model_type": "scaled", "architectures": None})
    m = load(path)
    assert m.model.inner.lm_head.weight is m.model.inner.model.embed_tokens.weight
    assert m.model.embed(TOKENS).tolist() == const(4.0, 1, 3, 8).tolist()
    assert m.model.score(mx.eye(8)).tolist() == const(0.5, 8, 16).tolist()
    m.save(tmp_path / "named", layout="hf")
    assert names_in(tmp_path / "named") == set(file)
    saved = mx.load(str(tmp_path / "named" / WEIGHTS))
    assert isinstance(saved, dict) and saved[f"inner.{EMBEDDING}"].tolist() == const(1.0, 16, 8).tolist()
    assert_saved_as_found(path, tmp_path / "out")


@pytest.mark.case("C34")
def test_c34_a_layout_that_folds_them_in_has_them_taken_out_again(tmp_path: Path, cli: Cli) -> None:
    """C34: mlx-lm's form of Falcon-H1 has the embedding times 4.0, and its head scores by 0.5 / 4.0 of that."""
    file = {EMBEDDING: const(1.0, 16, 8), "model.final_layernorm.weight": const(1.0, 8)}
    factors = {"embedding_multiplier": 4.0, "lm_head_multiplier": 0.5, "hidden_size": 8, "num_attention_heads": 4}
    path = checkpoint(tmp_path / "in", file, {"model_type": "falcon_h1", "tie_word_embeddings": True, **factors})
    write(path / WEIGHTS, file, {"format": "pt"})
    assert cli("convert", path, tmp_path / "mlx", "--layout", "mlx").code == 0
    folded = mx.load(str(tmp_path / "mlx" / WEIGHTS))
    assert isinstance(folded, dict) and set(folded) == set(file)
    embedding = folded[EMBEDDING]
    assert embedding.tolist() == const(4.0, 16, 8).tolist()
    assert (embedding * (0.5 / 4.0)).tolist() == const(0.5, 16, 8).tolist()
    assert cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf").code == 0
    assert (tmp_path / "back" / WEIGHTS).read_bytes() == (path / WEIGHTS).read_bytes()


@pytest.mark.case("C28")
@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("options", [{}, {"lazy": True}, {"strict": False}])
def test_a_head_alone_stands_for_the_embedding(
    tmp_path: Path, cli: Cli, bits: int | None, options: dict[str, Any]
) -> None:
    """Either end does, packed or not; it is written back as found, and a named layout has the embedding."""
    file = {name: array for name, array in t1_hearing().items() if not name.startswith("audio.")}
    config = {**T1, "quantization": {"group_size": 64, "bits": 4}}
    if bits is None:
        table = mx.dequantize(*(mx.array(file.pop(f"model.embed_tokens.{p}")) for p in PARTS), group_size=64, bits=4)
        file[EMBEDDING], config = np.array(table), T1
    usual = checkpoint(tmp_path / "usual", file, config)
    turned = {name.replace("model.embed_tokens", "lm_head"): array for name, array in file.items()}
    path = checkpoint(tmp_path / "turned", turned, config)
    m = load(path, **options)
    assert mx.array_equal(m.model(TOKENS), load(usual).model(TOKENS)).item()
    assert "lm_head.weight stands for model.embed_tokens.weight" in str(m.report)
    m.save(tmp_path / "named", layout="hf")
    assert names_in(tmp_path / "named") == set(file)
    assert_saved_as_found(path, tmp_path / "out", **options)
    assert cli("verify", path).code == 0
    assert "tie: lm_head.weight -> model.embed_tokens.weight" in cli("explain", path, HEAD).out
