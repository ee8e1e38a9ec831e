"""RWKV-7's recurrence, chunk by chunk and token by token, against its formula in NumPy."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.wkv import wkv

BATCH, HEADS, KEY, VALUE = 2, 3, 6, 5


def tokens(length: int, decay: float | None = None) -> list[np.ndarray]:
    """Receptances, decays, keys, values, and what is taken out and put in, as the model makes them."""
    random = np.random.default_rng(length)
    r, k, along = (random.standard_normal((BATCH, length, HEADS, KEY)) for _ in range(3))
    along /= np.linalg.norm(along, axis=-1, keepdims=True)
    w = -np.exp(-0.5) * (random.random(along.shape) if decay is None else np.full(along.shape, decay))
    v = random.standard_normal((BATCH, length, HEADS, VALUE))
    return [each.astype(np.float32) for each in (r, w, k, v, -along, along * random.random(along.shape))]


def token_by_token(
    r: np.ndarray, w: np.ndarray, k: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    read, memory = np.zeros(v.shape), np.zeros((BATCH, HEADS, KEY, VALUE))
    for row, now, head in np.ndindex(BATCH, v.shape[1], HEADS):
        at, held = (row, now, head), memory[row, head]
        held = np.exp(w[at])[:, None] * held + np.outer(b[at], a[at] @ held) + np.outer(k[at], v[at])
        memory[row, head], read[at] = held, r[at] @ held
    return read, memory


@pytest.mark.parametrize("length", [1, 2, 7, 64, 65, 130])
@pytest.mark.parametrize("decay", [None, 0.0, 1.0])
def test_values(length: int, decay: float | None) -> None:
    given = tokens(length, decay)
    read, memory = wkv(*map(mx.array, given), None)
    wanted, kept = token_by_token(*given)
    np.testing.assert_allclose(np.array(read), wanted, atol=2e-5 * np.abs(wanted).max())
    np.testing.assert_allclose(np.array(memory), kept, atol=2e-5 * np.abs(kept).max())


def test_parts_are_as_the_whole() -> None:
    given, memory, parts = tokens(90), None, []
    for start, stop in ((0, 1), (1, 70), (70, 71), (71, 90)):
        read, memory = wkv(*(mx.array(each[:, start:stop]) for each in given), memory)
        parts.append(read)
    wanted, kept = token_by_token(*given)
    np.testing.assert_allclose(np.array(mx.concatenate(parts, axis=1)), wanted, atol=1e-4)
    np.testing.assert_allclose(np.array(memory), kept, atol=1e-4)
