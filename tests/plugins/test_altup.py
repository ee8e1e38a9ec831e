"""AltUp against its formulas, a token and a stream at a time."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from weightloom.plugins.layers.altup import AltUp, gathered, spread
from weightloom.plugins.layers.norms import rms_norm

SIZE, STREAMS, ACTIVE, EPS = 8, 3, 1, 1e-6


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def _altup() -> AltUp:
    made = AltUp(SIZE, STREAMS, ACTIVE, rms_norm(EPS))
    made.correction_coefs.weight = mx.array(_random(STREAMS, STREAMS))
    made.prediction_coefs.weight = mx.array(_random(STREAMS**2, STREAMS))
    made.modality_router.weight = mx.array(_random(STREAMS, SIZE))
    made.router_norm.weight = mx.array(_random(SIZE))
    return made


def _routed(altup: AltUp, x: np.ndarray) -> np.ndarray:
    normed = x / np.sqrt((x**2).mean() + EPS) * np.array(altup.router_norm.weight)
    return np.tanh(np.array(altup.modality_router.weight) @ (normed / SIZE))


def test_each_stream_is_predicted_from_all() -> None:
    altup, streams = _altup(), _random(2, 4, STREAMS, SIZE)
    got = np.array(altup.predict(mx.array(streams)))
    for row in np.ndindex(2, 4):
        weights = np.array(altup.prediction_coefs.weight) @ _routed(altup, streams[row][ACTIVE])
        for stream in range(STREAMS):
            own = weights[stream * STREAMS : (stream + 1) * STREAMS]
            wanted = streams[row][stream] + sum(w * x for w, x in zip(own, streams[row], strict=True))
            np.testing.assert_allclose(got[row][stream], wanted, atol=1e-5)


def test_each_stream_moves_by_its_share_of_what_changed() -> None:
    altup, predicted, made = _altup(), _random(2, 4, STREAMS, SIZE), _random(2, 4, SIZE)
    got = np.array(altup.correct(mx.array(predicted), mx.array(made)))
    for row in np.ndindex(2, 4):
        shares = np.array(altup.correction_coefs.weight) @ _routed(altup, made[row]) + 1
        change = made[row] - predicted[row][ACTIVE]
        for stream in range(STREAMS):
            np.testing.assert_allclose(got[row][stream], predicted[row][stream] + shares[stream] * change, atol=1e-5)


def test_streams_begin_as_large_as_the_state_that_they_are_made_of() -> None:
    x = _random(2, 4, SIZE)
    streams = np.array(spread(mx.array(x), [nn.Linear(SIZE, SIZE, bias=False) for _ in range(2)]))
    np.testing.assert_array_equal(streams[:, :, 0], x)
    sizes = np.sqrt((streams**2).mean(axis=-1))
    np.testing.assert_allclose(sizes, np.repeat(sizes[:, :, :1], 3, axis=2), rtol=1e-5)


def test_streams_that_are_one_state_give_it_back() -> None:
    x = _random(2, 4, SIZE)
    streams = mx.array(np.stack([x, 3 * x, 0.2 * x], axis=2))
    np.testing.assert_allclose(np.array(gathered(streams, [nn.Identity(), nn.Identity()])), x, rtol=1e-5)
