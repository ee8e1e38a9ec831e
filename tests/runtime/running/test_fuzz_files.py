"""Whatever the small files beside a model hold, only named errors escape."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightloom.engine.errors import WeightloomError
from weightloom.plugins.configs.labels import label_names
from weightloom.plugins.judging.evidence import evidence_of
from weightloom.runtime.opening.sentence_steps import read_steps
from weightloom.runtime.running.embedding import open_embedder
from weightloom.runtime.running.judging import read_judge
from weightloom.runtime.running.pairs import takes_types
from weightloom.runtime.running.text_settings import read_text_settings

WORDS = [
    *("", ".", "Pooling", "x.Pooling", "x.Dense", "x.Transformer", "x.LogitScore", "1_Pooling", "2_Dense", "cls"),
    *("mean", "sentence_embedding", "torch.nn.modules.activation.Tanh", "\ud800", "\0", "a" * 300, "../x"),
]
FIELDS = [
    "type",
    "path",
    "pooling_mode",
    "pooling_mode_cls_token",
    "include_prompt",
    "embedding_dimension",
    "in_features",
    "out_features",
    "bias",
    "use_residual",
    "activation_function",
    "prompts",
    "default_prompt_name",
    "max_seq_length",
    "do_lower_case",
    "model_max_length",
    "model_input_names",
    "true_token_id",
    "false_token_id",
    "id2label",
    "num_labels",
    "architectures",
    "is_causal",
    "use_bidirectional_attention",
    "text_config",
]
atoms = (
    st.none() | st.booleans() | st.integers(-3, 20) | st.sampled_from([10**40, -1.5, float("inf"), float("nan")])
) | st.sampled_from(WORDS)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, "0", "1"]), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6)
steps = st.lists(st.fixed_dictionaries({"type": st.sampled_from(WORDS), "path": st.sampled_from(WORDS)}), max_size=4)
FILES = ["1_Pooling/config.json", "2_Dense/config.json", "sentence_bert_config.json", "tokenizer_config.json",
         "config_sentence_transformers.json"]  # fmt: skip


def look(folder: Path, config: Any) -> None:
    """Read all that embedding and scoring read of files."""
    readers: list[Any] = [
        lambda: open_embedder(folder),
        lambda: read_judge(folder, read_steps(folder)),
        lambda: read_text_settings(folder, read_steps(folder)),
        lambda: takes_types(folder),
        lambda: label_names(config),
        lambda: evidence_of(config, ["classifier.weight"], read_steps(folder)),
    ]
    for read in readers:
        with contextlib.suppress(WeightloomError):
            read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    for name in FILES:
        (made / name).parent.mkdir(exist_ok=True)
    return made


@settings(max_examples=300)
@given(steps | values, st.lists(objects | values, min_size=5, max_size=5), objects)
def test_only_named_errors_escape(folder: Path, listed: Any, contents: list[Any], config: Any) -> None:
    for name, content in zip(["modules.json", *FILES], [listed, *contents], strict=True):
        (folder / name).write_text(json.dumps(content))
    look(folder, config)


@given(st.binary(max_size=40))
def test_nor_any_of_bytes_that_are_no_json(folder: Path, raw: bytes) -> None:
    for name in ["modules.json", *FILES]:
        (folder / name).write_bytes(raw)
    look(folder, {})
