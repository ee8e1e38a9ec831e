"""What sampling leaves, against the reference implementation's processors in its order."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.runtime.running.sampling import Sampling, likely, penalised

pytestmark = [pytest.mark.oracle, pytest.mark.sample]

SETTINGS = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.7, top_k=5),
    Sampling(temperature=1.3, top_p=0.8),
    Sampling(temperature=0.9, min_p=0.2),
    Sampling(temperature=0.8, top_k=12, top_p=0.7, min_p=0.05, repetition_penalty=1.4),
    Sampling(temperature=1.0, repetition_penalty=0.6),
]


@pytest.mark.parametrize("how", SETTINGS, ids=str)
def test_the_same_tokens_are_left_with_the_same_scores(how: Sampling) -> None:
    import torch
    from transformers.generation import logits_process as theirs

    rng = np.random.default_rng(3)
    logits, ids = rng.normal(size=(4, 50)).astype(np.float32) * 2, rng.integers(0, 50, (4, 9))
    processors = [
        theirs.RepetitionPenaltyLogitsProcessor(how.repetition_penalty),
        theirs.TemperatureLogitsWarper(how.temperature),
        *([theirs.TopKLogitsWarper(how.top_k)] if how.top_k else []),
        *([theirs.TopPLogitsWarper(how.top_p)] if how.top_p < 1 else []),
        *([theirs.MinPLogitsWarper(how.min_p)] if how.min_p else []),
    ]
    wanted = torch.tensor(logits)
    for processor in processors:
        wanted = processor(torch.tensor(ids), wanted)
    seen = np.zeros((4, 50), bool)
    np.put_along_axis(seen, ids, True, axis=-1)
    scores = penalised(mx.array(logits), mx.array(seen), how.repetition_penalty) / how.temperature
    assert np.allclose(np.array(likely(scores, how)), wanted.numpy(), atol=1e-5)
