"""The gated delta rule, chunk by chunk and token by token, against its formula in NumPy."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.delta_rule import gated_delta_rule, unit

BATCH, GROUPS, HEADS, KEY, VALUE = 2, 2, 4, 6, 5


def tokens(length: int, decay: float = 1.0, rows: int | None = None) -> list[np.ndarray]:
    """Queries, keys, values, decays, for each of `rows` of the memory one, and rates."""
    random = np.random.default_rng(length)
    queries, keys = (random.standard_normal((BATCH, length, GROUPS, KEY)) for _ in range(2))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    values = random.standard_normal((BATCH, length, HEADS, VALUE))
    rate = random.random((BATCH, length, HEADS))
    log_decay = -decay * random.random(rate.shape if rows is None else (*rate.shape, rows))
    return [each.astype(np.float32) for each in (queries, keys, values, log_decay, rate)]


def token_by_token(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, log_decay: np.ndarray, rate: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    read, memory = np.zeros(values.shape), np.zeros((BATCH, HEADS, KEY, VALUE))
    for row, now, head in np.ndindex(BATCH, values.shape[1], HEADS):
        key, query = (each[row, now, head // (HEADS // GROUPS)].astype(np.float64) for each in (keys, queries))
        held = memory[row, head] * np.exp(log_decay[row, now, head])[..., None]
        memory[row, head] = held + np.outer(key, rate[row, now, head] * (values[row, now, head] - key @ held))
        read[row, now, head] = query @ memory[row, head]
    return read, memory


@pytest.mark.parametrize("length", [1, 2, 7, 64, 65, 130])
@pytest.mark.parametrize("decay", [0.1, 5.0])
@pytest.mark.parametrize("rows", [None, KEY])
def test_values(length: int, decay: float, rows: int | None) -> None:
    given = tokens(length, decay, rows)
    read, memory = gated_delta_rule(*map(mx.array, given), None)
    wanted, kept = token_by_token(*given)
    np.testing.assert_allclose(np.array(read), wanted, atol=2e-5)
    np.testing.assert_allclose(np.array(memory), kept, atol=2e-5)


@pytest.mark.parametrize("rows", [None, KEY])
def test_parts_are_as_the_whole(rows: int | None) -> None:
    given, memory, parts = tokens(90, rows=rows), None, []
    for start, stop in ((0, 1), (1, 70), (70, 71), (71, 90)):
        read, memory = gated_delta_rule(*(mx.array(each[:, start:stop]) for each in given), memory)
        parts.append(read)
    wanted, kept = token_by_token(*given)
    np.testing.assert_allclose(np.array(mx.concatenate(parts, axis=1)), wanted, atol=2e-5)
    np.testing.assert_allclose(np.array(memory), kept, atol=2e-5)


def test_the_same_key_again_and_again_stays_exact() -> None:
    queries, keys, values, log_decay, rate = tokens(128, 0.0)
    keys[:] = keys[:, :1]
    given = (queries, keys, values, log_decay, np.full_like(rate, 0.999))
    read, _ = gated_delta_rule(*map(mx.array, given), None)
    np.testing.assert_allclose(np.array(read), token_by_token(*given)[0], atol=1e-4)


@pytest.mark.parametrize("rows", [None, KEY])
def test_strong_decay_does_not_overflow(rows: int | None) -> None:
    given = tokens(100, 500.0, rows)
    read, _ = gated_delta_rule(*map(mx.array, given), None)
    np.testing.assert_allclose(np.array(read), token_by_token(*given)[0], atol=2e-5)


def test_what_is_kept_is_float32() -> None:
    given = [mx.array(each).astype(mx.bfloat16) for each in tokens(5)]
    assert {each.dtype for each in gated_delta_rule(*given, None)} == {mx.float32}
    assert unit(given[0]).dtype == mx.float32


def test_a_unit_has_length_one_or_none() -> None:
    np.testing.assert_allclose(
        np.array(mx.linalg.norm(unit(mx.array([[3.0, 4.0], [-2.0, 0.0]])), axis=-1)), 1, atol=1e-6
    )
    assert np.array(unit(mx.zeros((1, 2)))).tolist() == [[0.0, 0.0]]
