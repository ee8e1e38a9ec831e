"""Sampling: what each setting leaves, in numbers worked out by hand; seeds; refusals."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.engine.errors import UsageError
from weightloom.runtime.running.sampling import Sampling, choose, keys, likely, penalised

# Shares 0.5, 0.25, 0.125, 0.125 under a softmax.
SCORES = mx.log(mx.array([[0.125, 0.5, 0.125, 0.25]]))


def left(how: Sampling, scores: mx.array = SCORES) -> list[int]:
    return [int(place) for place in np.flatnonzero(np.isfinite(np.array(likely(scores, how))[0]))]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        (Sampling(), [0, 1, 2, 3]),
        (Sampling(top_k=1), [1]),
        (Sampling(top_k=2), [1, 3]),
        (Sampling(top_k=9), [0, 1, 2, 3]),
        (Sampling(top_p=0.4), [1]),
        (Sampling(top_p=0.6), [1, 3]),
        (Sampling(top_p=1e-9), [1]),
        (Sampling(min_p=0.4), [1, 3]),
        (Sampling(min_p=0.6), [1]),
        (Sampling(min_p=1.0), [1]),
        # Among the two likeliest, 0.75 of all, the first has two thirds.
        (Sampling(top_k=2, top_p=0.6), [1]),
    ],
    ids=str,
)
def test_what_is_left(how: Sampling, wanted: list[int]) -> None:
    assert left(how) == wanted


def test_a_penalty_makes_what_was_seen_less_likely() -> None:
    got = penalised(mx.array([[2.0, -2.0, 2.0, -2.0]]), mx.array([[True, True, False, False]]), 2.0)
    assert got.tolist() == [[1.0, -4.0, 2.0, -2.0]]


def test_what_is_chosen_comes_as_often_as_it_is_likely() -> None:
    how, found = Sampling(temperature=1.0, top_k=2), []
    following = keys(5)
    rows = mx.broadcast_to(SCORES, (1, 4))
    for _ in range(600):
        found.append(int(choose(rows, how, next(following), None).item()))
    assert set(found) == {1, 3}
    assert abs(found.count(1) / 600 - 2 / 3) < 0.08


def test_rows_with_one_key_are_chosen_as_they_are_alone() -> None:
    rows = mx.random.normal((5, 40), key=mx.random.key(1))
    key, how = mx.random.key(2), Sampling(temperature=0.8, top_p=0.9)
    whole = choose(rows, how, key, None).tolist()
    assert whole == [choose(row, how, key, None).item() for row in mx.split(rows, 5)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"min_p": -0.1}, "min_p is -0.1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0"),
        ({"temperature": float("inf")}, "temperature is inf"),
    ],
)
def test_numbers_out_of_range_are_refused(values: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Sampling(**values)  # type: ignore[arg-type]
