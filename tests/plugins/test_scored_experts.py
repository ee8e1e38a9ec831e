"""Experts chosen by corrected scores, against each token's worked out one by one."""

from dataclasses import replace

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.activations import relu
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.scored_experts import ScoredSparseMlp
from weightloom.plugins.layers.scoring import Scoring, one_best, shares

COUNT, HIDDEN, INNER, GROUPS = 12, 8, 6, 4

CHOICES = [
    Scoring(),
    Scoring(groups=GROUPS, kept=2, scale=2.5),
    Scoring(groups=GROUPS, kept=GROUPS, normalise=False),
    Scoring(shares, groups=GROUPS, kept=2, of_group=one_best, normalise=False, scale=3.0),
]


def random(*shape: int) -> mx.array:
    return mx.array(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


def chosen_by_hand(scoring: Scoring, logits: np.ndarray, k: int, correction: np.ndarray) -> dict[int, float]:
    """Give the experts of one token, and their weights."""
    exps = np.exp(logits - logits.max())
    scores = exps / exps.sum() if scoring.scores is shares else 1 / (1 + np.exp(-logits))
    groups = np.split(np.argsort(np.arange(COUNT)), scoring.groups)
    ranked = scores + correction
    counted = 1 if scoring.of_group is one_best else 2
    by_group = sorted(groups, key=lambda group: -np.sort(ranked[group])[-counted:].sum())
    allowed = np.concatenate(by_group[: scoring.kept])
    chosen = sorted(allowed, key=lambda expert: -ranked[expert])[:k]
    total = sum(scores[expert] for expert in chosen) if scoring.normalise else 1.0
    return {expert: scores[expert] / total * scoring.scale for expert in chosen}


@pytest.mark.parametrize("scoring", CHOICES)
@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_choice(scoring: Scoring, k: int) -> None:
    # Corrections below 0 by far: what is outside the best groups is not chosen for all that.
    logits, correction = random(20, COUNT), random(COUNT) - 2
    experts, weights = scoring.choose(logits, k, correction)
    for row in range(20):
        wanted = chosen_by_hand(scoring, np.array(logits[row]), k, np.array(correction))
        got = dict(zip(np.array(experts[row]).tolist(), np.array(weights[row]).tolist(), strict=True))
        assert got.keys() == wanted.keys()
        assert all(abs(got[each] - wanted[each]) < 1e-5 for each in wanted)


@pytest.mark.parametrize("with_shared", [False, True])
def test_values(with_shared: bool) -> None:
    scoring, k = CHOICES[1], 3
    shared = GatedMlp(HIDDEN, INNER, relu) if with_shared else None
    sparse = ScoredSparseMlp(Experts(COUNT, HIDDEN, INNER, relu), scoring, k, shared)
    sparse.experts.gate_up_proj = random(COUNT, 2 * INNER, HIDDEN)
    sparse.experts.down_proj = random(COUNT, HIDDEN, INNER)
    sparse.gate.weight = random(COUNT, HIDDEN)
    sparse.gate.e_score_correction_bias = random(COUNT)
    x = random(2, 7, HIDDEN)
    wanted = np.zeros(x.shape)
    gate_up, down = np.array(sparse.experts.gate_up_proj), np.array(sparse.experts.down_proj)
    for place in np.ndindex(2, 7):
        token = np.array(x)[place]
        logits = np.array(sparse.gate.weight) @ token
        for expert, weight in chosen_by_hand(scoring, logits, k, np.array(random(COUNT))).items():
            both = gate_up[expert] @ token
            wanted[place] += weight * (down[expert] @ (np.maximum(both[:INNER], 0) * both[INNER:]))
    beside = 0 if shared is None else np.array(shared(x))
    np.testing.assert_allclose(np.array(sparse(x)), wanted + beside, atol=1e-4)


def test_without_a_correction_the_scores_choose() -> None:
    scoring = replace(CHOICES[0], normalise=False)
    sparse = ScoredSparseMlp(Experts(COUNT, HIDDEN, INNER, relu), scoring, 2, corrected=False)
    assert set(sparse.gate.parameters()) == {"weight"}
    tokens = random(5, HIDDEN)
    sparse.gate.weight = random(COUNT, HIDDEN)
    chosen, _ = sparse.choose(tokens)
    wanted = np.argsort(-np.array(tokens @ sparse.gate.weight.T), axis=-1)[:, :2]
    assert [set(row) for row in np.array(chosen).tolist()] == [set(row) for row in wanted.tolist()]


def test_the_dtype_stays_and_scores_are_float32() -> None:
    shared = GatedMlp(HIDDEN, INNER, relu)
    sparse = ScoredSparseMlp(Experts(COUNT, HIDDEN, INNER, relu), CHOICES[1], 2, shared)
    sparse.set_dtype(mx.bfloat16)
    x = random(1, 3, HIDDEN).astype(mx.bfloat16)
    assert sparse(x).dtype == mx.bfloat16
    assert sparse.gate(x[0]).dtype == mx.float32
