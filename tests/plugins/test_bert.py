"""BERT: configs, the pooler, padding, heads; the numbers are compared with the reference in tests/oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, write
from tests.runtime.models import BERT, config_of, write_model
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.bert import build, read_config
from weightloom.plugins.configs.bert_config import pooler_as_stored
from weightloom.plugins.layers.bert import BertModel, after_padding_id, in_order
from weightloom.runtime import load

TOKENS = mx.array([[1, 2, 3, 4], [5, 6, 7, 8]])


def model(**changes: Any) -> BertModel:
    mx.random.seed(3)
    return build(read_config({**BERT, **changes}))


def test_positions_are_counted_from_0_or_from_behind_the_id_of_padding() -> None:
    tokens = mx.array([[7, 8, 9, 2], [1, 1, 7, 8], [7, 8, 1, 1]])
    assert in_order(tokens).tolist() == [0, 1, 2, 3]
    assert after_padding_id(1)(tokens).tolist() == [[2, 3, 4, 5], [1, 1, 2, 3], [2, 3, 1, 1]]


def test_segments_count() -> None:
    built = model()
    second = mx.ones_like(TOKENS)
    assert mx.abs(built(TOKENS, None, second) - built(TOKENS)).max().item() > 1e-4


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_masks_work_in_half_precision(dtype: mx.Dtype) -> None:
    built = model()
    built.set_dtype(dtype)
    found = built(TOKENS, mx.array([[1, 1, 0, 0], [1, 1, 1, 1]]))
    assert found.dtype == dtype and mx.isfinite(found).all().item()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_attention_heads": 3}, "num_attention_heads"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"hidden_act": "swish7"}, "hidden_act"),
        ({"hidden_size": -8}, "hidden_size"),
        ({"vocab_size": 2**31}, "vocab_size"),
        ({"intermediate_size": -1}, "intermediate_size"),
        ({"type_vocab_size": 0}, "type_vocab_size"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"vocab_size": None}, "vocab_size"),
        ({"is_decoder": True}, "is_decoder"),
    ],
)
def test_a_config_that_it_cannot_run_is_refused(change: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_config({**BERT, **change})
    assert raised.value.field == field


def test_the_pooler_follows_the_names() -> None:
    config = read_config(BERT)
    assert pooler_as_stored(config, ["pooler.dense.weight"]).has_pooler
    assert not pooler_as_stored(config, ["embeddings.LayerNorm.weight"]).has_pooler
    assert read_config({**BERT, "has_pooler": False}).has_pooler  # the files decide, not a field of this name


@pytest.mark.parametrize("class_name", ["BertForPreTraining", "BertForSequenceClassification"])
def test_a_head_models_checkpoint_gives_its_encoder_the_head_kept_for_saving(tmp_path: Path, class_name: str) -> None:
    source = write_model(tmp_path / "a", "bert", config_of("bert", architectures=[class_name]))
    stored = {f"bert.{k}": np.array(v) for k, v in mx.load(str(source / "model.safetensors")).items()}
    write(source / "model.safetensors", {**stored, **filled({"classifier.weight": (2, 16), "classifier.bias": (2,)})})
    m = load(source, task="embed")
    assert {record.name for record in m.report.dropped} == {"classifier.weight", "classifier.bias"}
    m.save(tmp_path / "b")
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    plain = write_model(tmp_path / "c", "bert")
    assert mx.array_equal(load(plain).model(TOKENS), m.model(TOKENS)).item()
