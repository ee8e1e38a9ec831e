"""BERT with a classifier against the reference implementation: logits of pairs, and the scores that rerank makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.oracle.logits import assert_close
from tests.oracle.test_bert import padded, write_reference
from tests.runtime.models import pair_tokenizer
from weightloom.runtime import load, rerank

pytestmark = pytest.mark.oracle

NAME = "BertForSequenceClassification"


@pytest.mark.sample
@pytest.mark.parametrize("labels", [1, 2, 5])
def test_logits(tmp_path: Path, labels: int) -> None:
    import torch

    tokens, mask, types = padded()
    write_reference(NAME, tmp_path, num_labels=labels)
    reference = _reference(tmp_path)
    with torch.no_grad():
        given = {"attention_mask": torch.tensor(mask), "token_type_ids": torch.tensor(types)}
        expected = reference(torch.tensor(tokens), **given).logits.numpy()
    m = load(tmp_path)
    assert m.task == "rerank"
    found = m.model(*(mx.array(each.astype(np.int32)) for each in (tokens, mask, types)))
    assert_close(np.array(found), expected)


def _reference(folder: Path) -> Any:
    """Read what was written, as a user of the reference does."""
    import transformers

    return transformers.AutoModelForSequenceClassification.from_pretrained(folder).float().eval()


@pytest.mark.parametrize(("labels", "label"), [(1, None), (3, "LABEL_2")])
def test_scores_of_pairs(tmp_path: Path, labels: int, label: str | None) -> None:
    import torch
    import transformers

    write_reference(NAME, tmp_path, num_labels=labels, vocab_size=260)
    pair_tokenizer(tmp_path, pad_token="<s>", eos_token="</s>", tokenizer_class="PreTrainedTokenizerFast")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(tmp_path)
    query, documents = "what is it?", ["a cat", "nothing at all, to be sure", "größe"]
    names = ["input_ids", "token_type_ids", "attention_mask"]
    encoded = tokenizer(
        [query] * 3, documents, padding=True, truncation="longest_first", max_length=24, return_tensors="pt",
        return_token_type_ids=True,
    )  # fmt: skip
    with torch.no_grad():
        logits = _reference(tmp_path)(**{name: encoded[name] for name in names}).logits
    expected = torch.sigmoid(logits)[:, 0] if label is None else torch.softmax(logits, dim=-1)[:, 2]
    m = load(tmp_path)
    assert_close(np.array(rerank(m, query, documents, label=label, max_length=24)), expected.numpy())


def test_it_loads_in_the_reference_as_it_is_saved(tmp_path: Path) -> None:
    import torch

    write_reference(NAME, tmp_path / "a", num_labels=1)
    load(tmp_path / "a").save(tmp_path / "b", layout="hf")
    first, second = (_reference(tmp_path / name).state_dict() for name in "ab")
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
