"""embed as the files beside a model say: steps in their order, dense layers, prompts, the length of a text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.runtime.models import runnable, sentence_files
from tests.runtime.support import Cli
from weightloom.engine.errors import CheckpointError, ConfigError, PlanError, UsageError
from weightloom.runtime import LoadedModel, embed, load
from weightloom.runtime.running.embed_settings import Normalize, read_settings

Array = np.ndarray[Any, Any]
DENSE = {"in_features": 16, "out_features": 5, "activation_function": "torch.nn.modules.activation.Tanh"}
WEIGHT = np.random.default_rng(1).standard_normal((5, 16)).astype(np.float32) / 4
BIAS = np.linspace(-1, 1, 5, dtype=np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sentence_files(runnable(tmp_path_factory.mktemp("bert"), "bert"), normalize=False)


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def steps(folder: Path, *kinds: str) -> Path:
    """List steps of these kinds, each in a folder of its number and kind."""
    entries = [
        {"idx": n, "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(("Transformer", *kinds))
    ]
    write_json(folder / "modules.json", entries)
    return folder


def dense(folder: Path, number: int = 2, **changes: Any) -> Path:
    write_json(folder / f"{number}_Dense" / "config.json", {**DENSE, **changes})
    write(folder / f"{number}_Dense" / "model.safetensors", {"linear.weight": WEIGHT, "linear.bias": BIAS})
    return folder


def states(m: LoadedModel, text: str) -> Array:
    """The hidden states (L, D) of one text."""
    return np.array(m.model(mx.array([m.need_tokenizer().encode(text)])))[0]


@pytest.mark.parametrize("norm_first", [False, True])
def test_steps_act_in_their_order(path: Path, norm_first: bool) -> None:
    kinds = ("Pooling", "Normalize", "Dense") if norm_first else ("Pooling", "Dense", "Normalize")
    m = load(dense(steps(path, *kinds), 3 if norm_first else 2))
    mean = states(m, "some text").mean(axis=0)
    unit = mean / np.linalg.norm(mean)
    made = np.tanh(WEIGHT @ (unit if norm_first else mean) + BIAS)
    expected = made if norm_first else made / np.linalg.norm(made)
    assert np.abs(np.array(embed(m, ["some text", "longer than the other text"]))[0] - expected).max() < 1e-5
    forced = np.array(embed(m, ["some text"], normalize=not norm_first))[0]
    assert np.isclose(np.linalg.norm(forced), 1, atol=1e-5) is np.bool_(not norm_first)


ACTIVATED: dict[str, Any] = {
    "torch.nn.modules.linear.Identity": lambda x: x,
    "torch.nn.modules.activation.ReLU": lambda x: np.maximum(x, 0),
    "torch.nn.modules.activation.Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "torch.nn.modules.activation.SiLU": lambda x: x / (1 + np.exp(-x)),
    "torch.nn.modules.activation.Tanh": np.tanh,
}


@pytest.mark.parametrize("name", ACTIVATED)
def test_activations_of_a_dense_layer(path: Path, name: str) -> None:
    m = load(dense(steps(path, "Pooling", "Dense"), activation_function=name))
    expected = ACTIVATED[name](WEIGHT @ states(m, "text").mean(axis=0) + BIAS)
    assert np.abs(np.array(embed(m, ["text"]))[0] - expected).max() < 1e-5


def test_a_dense_layer_with_a_residual_and_without_a_bias(path: Path) -> None:
    dense(steps(path, "Pooling", "Dense"), bias=False, use_residual=True)
    residual = WEIGHT[::-1].copy()
    write(path / "2_Dense" / "model.safetensors", {"linear.weight": WEIGHT, "residual.weight": residual})
    m = load(path)
    mean = states(m, "text").mean(axis=0)
    assert np.abs(np.array(embed(m, ["text"]))[0] - np.tanh(WEIGHT @ mean) - residual @ mean).max() < 1e-5


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"in_features": "16"}, ConfigError, "in_features is '16'"),
        ({"out_features": 0}, ConfigError, "out_features is 0"),
        ({"bias": "no"}, ConfigError, "bias is 'no'"),
        ({"activation_function": "mine.Curve"}, ConfigError, "mine.Curve"),
        ({"module_input_name": "token_embeddings"}, ConfigError, "token_embeddings"),
        ({"out_features": 6}, PlanError, "linear"),
        ({"bias": False}, PlanError, "linear.bias"),
    ],
)
def test_what_a_dense_layer_may_not_be(path: Path, changes: dict[str, Any], error: type[Exception], said: str) -> None:
    m = load(dense(steps(path, "Pooling", "Dense"), **changes))
    with pytest.raises(error, match=said):
        embed(m, ["text"])


def test_a_dense_layer_must_fit_what_comes_before_it(path: Path) -> None:
    write_json(path / "1_Pooling" / "config.json", {"pooling_mode": ["cls", "mean"]})
    with pytest.raises(ConfigError, match="in_features is 16, and what comes before has 32"):
        embed(load(dense(steps(path, "Pooling", "Dense"))), ["text"])
    (path / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="2_Dense"):
        embed(load(path), ["text"])


def test_the_width_that_the_pooling_says_is_the_models(path: Path) -> None:
    write_json(path / "1_Pooling" / "config.json", {"pooling_mode": "cls", "embedding_dimension": 8})
    with pytest.raises(ConfigError, match="of 8 dimensions, and the model has 16"):
        embed(load(path), ["text"])


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("Pooling", "LSTM"), "'LSTM'"),
        (("Dense", "Pooling"), "'Dense' before any Pooling"),
        (("Pooling", "Pooling"), "two Pooling"),
    ],
)
def test_steps_that_are_not_known_are_refused_by_name(path: Path, kinds: tuple[str, ...], said: str) -> None:
    m = load(steps(path, *kinds))
    with pytest.raises(ConfigError, match=said) as raised:
        embed(m, ["text"])
    assert raised.value.file == str(path / "modules.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"a": 1}, "not a list"),
        ([3], "not a list"),
        ([{"path": "../up", "type": "x.Pooling"}], r"\.\./up"),
        ([{"path": "/etc", "type": "x.Pooling"}], "/etc"),
        ([{"path": 3, "type": "x.Pooling"}], "path is 3"),
        ([{"path": ""}], "type is None"),
    ],
)
def test_a_list_of_steps_that_cannot_be_decides_nothing(path: Path, content: Any, said: str) -> None:
    write_json(path / "modules.json", content)
    with pytest.raises(ConfigError, match=said) as raised:
        load(path)
    assert raised.value.file == str(path / "modules.json")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("1_Pooling/config.json", [1], "list"),
        ("sentence_bert_config.json", {"max_seq_length": -3}, "-3"),
        ("sentence_bert_config.json", {"do_lower_case": "no"}, "'no'"),
        ("config_sentence_transformers.json", {"prompts": ["a"]}, "prompts"),
        ("config_sentence_transformers.json", {"prompts": {"query": 3}}, "prompts"),
        ("config_sentence_transformers.json", {"prompts": {"q": "q: "}, "default_prompt_name": "query"}, "'query'"),
    ],
)
def test_what_other_files_may_not_say(path: Path, file: str, content: Any, said: str) -> None:
    write_json(path / file, content)
    m = load(path)  # loading and saving need none of it
    with pytest.raises(ConfigError, match=said) as raised:
        embed(m, ["text"])
    assert raised.value.file == str(path / file)


def test_a_folder_1_pooling_is_enough(path: Path) -> None:
    (path / "modules.json").unlink()
    pooling = read_settings(path).pooling
    assert pooling is not None and pooling.modes == ("mean",) and not read_settings(path).after


def test_the_norm_is_one_of_the_steps(path: Path) -> None:
    assert read_settings(steps(path, "Pooling", "Dropout", "Normalize")).after == (Normalize(),)


def prompted(path: Path, **content: Any) -> Path:
    write_json(path / "config_sentence_transformers.json", {"prompts": {"query": "query: ", "doc": ""}, **content})
    return path


def test_prompts_by_text_by_name_and_by_default(path: Path) -> None:
    m = load(prompted(path))
    wanted = embed(m, ["query: a"])
    assert mx.array_equal(embed(m, ["a"], prompt="query: "), wanted).item()
    assert mx.array_equal(embed(m, ["a"], prompt_name="query"), wanted).item()
    assert not mx.array_equal(embed(m, ["a"]), wanted).item()
    default = load(prompted(path, default_prompt_name="query"))
    assert mx.array_equal(embed(default, ["a"]), wanted).item()
    assert mx.array_equal(embed(default, ["a"], prompt_name="doc"), embed(m, ["a"])).item()
    with pytest.raises(UsageError, match="no prompt 'passage'") as raised:
        embed(m, ["a"], prompt_name="passage")
    assert raised.value.expected == "one of query, doc"
    with pytest.raises(UsageError, match="both given"):
        embed(m, ["a"], prompt="x", prompt_name="query")


def test_a_prompt_that_does_not_count_is_seen_and_not_pooled(path: Path) -> None:
    write_json(path / "1_Pooling" / "config.json", {"pooling_mode": ["mean", "cls"], "include_prompt": False})
    m = load(prompted(path))
    length = len(m.need_tokenizer().encode("query: "))
    counted = states(m, "query: text")[length:]
    expected = np.concatenate([counted.mean(axis=0), counted[0]])
    assert np.abs(np.array(embed(m, ["text", "a text"], prompt_name="query"))[0] - expected).max() < 1e-5
    own = states(m, "text")
    assert np.abs(np.array(embed(m, ["text"]))[0] - np.concatenate([own.mean(axis=0), own[0]])).max() < 1e-5


@pytest.mark.parametrize(
    ("file", "tokenizer", "asked", "expected"),
    [
        (10, None, None, 10),
        (None, 12, None, 12),
        (10, 6, None, 10),
        (None, 10**30, None, 24),
        (100, None, None, 24),
        (10, 12, 7, 7),
        (10, None, 30, 24),
    ],
)
def test_the_length_of_a_text(
    path: Path, file: int | None, tokenizer: int | None, asked: int | None, expected: int
) -> None:
    """The file of the step, else the tokenizer's; what is asked for before both; never more than 24 positions."""
    write_json(path / "sentence_bert_config.json", {"max_seq_length": file})
    settings = json.loads((path / "tokenizer_config.json").read_text())
    write_json(path / "tokenizer_config.json", {**settings, "model_max_length": tokenizer})
    m = load(path)
    text = "abcdefghijklmnopqrstuvwxyz"
    same = embed(m, [text[:expected]], max_length=24)
    assert mx.allclose(embed(m, [text], max_length=asked), same, atol=1e-6).item()
    assert not mx.allclose(embed(m, [text[: expected - 1]], max_length=24), same, atol=1e-6).item()


@pytest.mark.parametrize("value", ["512", 1.5, True, 1])
def test_a_tokenizers_length_that_is_none_is_named(path: Path, value: object) -> None:
    write_json(path / "sentence_bert_config.json", {})
    write_json(path / "tokenizer_config.json", {"model_max_length": value})
    m = load(path)
    with pytest.raises(ConfigError, match="model_max_length") as raised:
        embed(m, ["text"])
    assert raised.value.field == "model_max_length"


def test_the_command_takes_ways_prompts_and_a_length(cli: Cli, path: Path) -> None:
    prompted(path)
    m = load(path)
    wanted = embed(m, ["a text"], pooling=("cls", "max"), prompt_name="query", max_length=8)
    options = ("--pooling", "cls,max", "--prompt-name", "query", "--max-length", 8)
    ran = cli("embed", path, "a text", *options, "--json")
    assert ran.code == 0 and np.allclose(ran.data["embeddings"], np.array(wanted)) and ran.data["dimensions"] == 32
    assert cli("embed", path, "a text", "--pooling", "median").code == 2
    assert cli("embed", path, "a text", "--prompt-name", "none").code == 2
    assert cli("embed", path, "a text", "--max-length", "2").code == 2
