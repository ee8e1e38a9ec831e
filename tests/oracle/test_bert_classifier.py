"""BERT with a classifier against the reference implementation: the scores that rerank makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.logits import assert_close
from tests.oracle.test_bert import write_reference
from tests.runtime.models import pair_tokenizer
from weightloom.runtime import load, rerank

pytestmark = pytest.mark.oracle

NAME = "BertForSequenceClassification"


def _reference(folder: Path) -> Any:
    """Read what was written, as a user of the reference does."""
    import transformers

    return transformers.AutoModelForSequenceClassification.from_pretrained(folder).float().eval()


@pytest.mark.sample
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
