"""What layers hear beside their state, against its formula a token and a layer at a time."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from weightloom.plugins.layers.activations import silu
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.per_layer import Heard, Hears, PerLayerDecoder

SIZE, WIDTH, ROWS, LAYERS, EPS = 8, 4, 6, 3, 1e-6


def _normed(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean() + EPS)


def test_layers_hear_of_the_token_and_of_the_state() -> None:
    layers = [nn.Identity() for _ in range(LAYERS)]
    decoder = PerLayerDecoder(10, SIZE, rms_norm(EPS), layers, 0, 1.0, Heard(ROWS, WIDTH))
    x = np.random.default_rng(0).normal(size=(2, 5, SIZE)).astype(np.float32)
    tokens = np.array([[0, 1, 5, 6, 9], [2, 3, 4, 7, 8]])
    got = np.array(decoder.heard(mx.array(x), mx.array(tokens)))
    table, matrix = (
        np.array(each.weight) for each in (decoder.embed_tokens_per_layer, decoder.per_layer_model_projection)
    )
    for row, place in np.ndindex(*tokens.shape):
        token = tokens[row, place] if tokens[row, place] < ROWS else 0
        for layer in range(LAYERS):
            part = slice(layer * WIDTH, (layer + 1) * WIDTH)
            seen = _normed(matrix[part] @ x[row, place] / np.sqrt(SIZE))
            wanted = (seen + table[token, part] * np.sqrt(WIDTH)) / np.sqrt(2)
            np.testing.assert_allclose(got[row, place, layer], wanted, atol=1e-5)


def test_what_is_heard_passes_by_a_gate_of_the_state() -> None:
    hears = Hears()
    hears.add_hearing(SIZE, WIDTH, silu, rms_norm(EPS))
    x, heard = (np.random.default_rng(1).normal(size=(1, 2, size)).astype(np.float32) for size in (SIZE, WIDTH))
    got = np.array(hears.from_heard(mx.array(x), mx.array(heard)))
    gate, back = (np.array(each.weight) for each in (hears.per_layer_input_gate, hears.per_layer_projection))
    for place in range(2):
        opened = gate @ x[0, place]
        opened = opened / (1 + np.exp(-opened))
        np.testing.assert_allclose(got[0, place], _normed(back @ (opened * heard[0, place])), atol=1e-5)
