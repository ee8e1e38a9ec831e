"""embed and rerank against the package sentence-transformers, where it is installed (extra `sentences`).

Without it, tests/runtime/running compares with its documented formulas, written with NumPy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.runtime.models import add_tokenizer, classifier, config_of, pair_tokenizer, write_model
from tests.runtime.running.test_rerank import TEMPLATE, judge
from weightloom.runtime import embed, load, rerank

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

TEXTS = ["a", "a longer text", "of middle", "x" * 60, "größe"]
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
TOKENIZER = {"pad_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}


@pytest.fixture(scope="module", autouse=True)
def package() -> Any:
    return pytest.importorskip("sentence_transformers", reason="the extra `sentences` is not installed")


def made(folder: Path, pooling: dict[str, Any], after: tuple[str, ...] = ()) -> Path:
    """A tiny BERT with the files of a sentence-transformers model."""
    return with_files(pair_tokenizer(write_model(folder, "bert"), **TOKENIZER), pooling, after)


def with_files(folder: Path, pooling: dict[str, Any], after: tuple[str, ...] = ()) -> Path:
    """Put the files of a sentence-transformers model beside the weights."""
    kinds = ("Transformer", "Pooling", *after)
    listed = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    for n, kind in enumerate(kinds[1:], 1):
        (folder / f"{n}_{kind}").mkdir()
        content: dict[str, Any] = {"word_embedding_dimension": 16, **pooling} if kind == "Pooling" else {}
        if kind == "Dense":
            content = {"in_features": 16, "out_features": 5, "bias": True, "use_residual": True,
                       "activation_function": "torch.nn.modules.activation.GELU"}  # fmt: skip
            chance = np.random.default_rng(2)
            weights = {"linear.weight": (5, 16), "linear.bias": (5,), "residual.weight": (5, 16)}
            arrays = {name: chance.standard_normal(shape).astype(np.float32) for name, shape in weights.items()}
            write(folder / f"{n}_{kind}" / "model.safetensors", arrays)
        (folder / f"{n}_{kind}" / "config.json").write_text(json.dumps(content))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": False}))
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: "}, "default_prompt_name": None, "similarity_fn_name": "cosine"})
    )
    return folder


def agree(folder: Path, package: Any, **options: Any) -> None:
    reference = package.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    expected = reference.encode(TEXTS, **options)
    assert np.abs(np.array(embed(load(folder), TEXTS, **options)) - expected).max() < 2e-5


@pytest.mark.parametrize("mode", MODES)
def test_each_way_to_pool(tmp_path: Path, package: Any, mode: str) -> None:
    agree(made(tmp_path, {"pooling_mode": mode}), package)


def test_several_ways_by_their_flags(tmp_path: Path, package: Any) -> None:
    flags = {f"pooling_mode_{name}": True for name in ("mean_tokens", "cls_token", "weightedmean_tokens")}
    agree(made(tmp_path, flags), package)


@pytest.mark.parametrize("after", [("Normalize",), ("Dense",), ("Dense", "Normalize"), ("Normalize", "Dense")], ids=str)
def test_steps_after_the_pooling(tmp_path: Path, package: Any, after: tuple[str, ...]) -> None:
    agree(made(tmp_path, {"pooling_mode": "mean"}, after), package)


@pytest.mark.parametrize("include", [True, False])
def test_prompts(tmp_path: Path, package: Any, include: bool) -> None:
    path = made(tmp_path, {"pooling_mode": ["mean", "weightedmean", "cls"], "include_prompt": include})
    agree(path, package, prompt_name="query")
    agree(path, package, prompt="Say: ")


@pytest.mark.parametrize("inputs", [["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]])
@pytest.mark.parametrize("activation", [None, "torch.nn.modules.linear.Identity"])
def test_scores_of_pairs(tmp_path: Path, package: Any, activation: str | None, inputs: list[str]) -> None:
    more = {} if activation is None else {"sentence_transformers": {"activation_fn": activation}}
    path = pair_tokenizer(classifier(tmp_path, **more), model_input_names=inputs, **TOKENIZER)
    reference = package.CrossEncoder(str(path), device="cpu", local_files_only=True, max_length=20)
    expected = reference.predict([("a query", text) for text in TEXTS])
    assert np.abs(np.array(rerank(load(path), "a query", TEXTS, max_length=20)) - expected).max() < 2e-5


@pytest.mark.parametrize("no", [None, 7])
def test_scores_of_a_generator_that_judges(tmp_path: Path, package: Any, no: int | None) -> None:
    path = judge(tmp_path, true_token_id=5, false_token_id=no)
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "architectures": ["LlamaForCausalLM"]}))
    settings = {"bos_token": "<s>", "chat_template": TEMPLATE, **TOKENIZER}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    part = {"method": "forward", "method_output_name": "logits"}
    (path / "sentence_bert_config.json").write_text(
        json.dumps({
            "transformer_task": "text-generation",
            "modality_config": {"text": part, "message": {**part, "format": "flat"}},
            "module_output_name": "causal_logits",
        })
    )  # fmt: skip
    names = ["base.modules.transformer.Transformer", "cross_encoder.modules.logit_score.LogitScore"]
    listed = [
        {"idx": n, "name": str(n), "path": "1_LogitScore" if n else "", "type": f"sentence_transformers.{name}"}
        for n, name in enumerate(names)
    ]
    (path / "modules.json").write_text(json.dumps(listed))
    (path / "config_sentence_transformers.json").write_text(json.dumps({"model_type": "CrossEncoder", "prompts": {}}))
    texts = [text for text in TEXTS if len(text) < 60]  # the reference cuts what is longer out of the middle
    reference = package.CrossEncoder(str(path), device="cpu", local_files_only=True)
    expected = reference.predict([[{"role": "query", "content": "what"}, {"role": "document", "content": text}]
                                  for text in texts])  # fmt: skip
    assert np.abs(np.array(rerank(load(path, task="rerank"), "what", texts)) - expected).max() < 2e-5


DECODERS = {
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 8},
    "gemma3_text": {
        "architectures": ["Gemma3TextModel"],
        "use_bidirectional_attention": True,
        "sliding_window": 12,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 8,
        "head_dim": 8,
    },
}


@pytest.mark.parametrize(("model_type", "mode"), [("qwen3", "lasttoken"), ("gemma3_text", "mean")])
def test_decoders_that_embed(tmp_path: Path, package: Any, model_type: str, mode: str) -> None:
    """Padding comes before texts there and behind them here."""
    sizes = {name: config_of("llama")[name] for name in ("vocab_size", "intermediate_size", "num_hidden_layers")}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "max_position_embeddings": 64}
    config = {"model_type": model_type, **sizes, **heads, "torch_dtype": "float32", **DECODERS[model_type]}
    write_model(tmp_path, model_type, config, f"{model_type}_embedder")
    settings = {**TOKENIZER, "padding_side": "left" if mode == "lasttoken" else "right"}
    agree(with_files(add_tokenizer(tmp_path, **settings), {"pooling_mode": mode}, ("Dense", "Normalize")), package)
