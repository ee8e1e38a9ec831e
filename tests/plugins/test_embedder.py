"""Decoders without their head: what their tokens see, and which of them a classifier scores."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.engine.errors import UsageError
from weightloom.plugins.layers.activations import silu
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names, capped, times
from weightloom.plugins.layers.embedder import DecoderClassifier, Embedder, both_ways
from weightloom.plugins.layers.masks import Chunked, Window, present_mask
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm

SIZE, WORDS = 8, 12
TOKENS = mx.array([[1, 5, 2, 7, 3], [4, 6, 8, 0, 0]])
PRESENT = mx.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def decoder(window: Window = None, **options: Any) -> Decoder:
    mx.random.seed(2)
    norm = rms_norm(1e-6)
    attention = Attention(AttentionShape(SIZE, 2, 1, 4), None)
    block = Block(attention, GatedMlp(SIZE, 6, silu), SIZE, norm, window)
    return Decoder(WORDS, SIZE, norm(SIZE), [block], **options)


@pytest.mark.parametrize("window", [None, 1, 2])
def test_both_ways_is_so_many_to_either_side(window: int | None) -> None:
    mask = both_ways(5, window, None)
    far = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    seen = np.ones((5, 5), bool) if mask is None else np.array(mask)
    np.testing.assert_array_equal(seen, far <= (5 if window is None else window))


def test_chunks_have_no_other_side() -> None:
    with pytest.raises(UsageError, match="sees chunks"):
        both_ways(5, Chunked(2), None)


def test_states_are_those_of_the_decoder_and_what_fills_up_changes_none() -> None:
    whole = decoder()
    made = Embedder(whole, present_mask)(TOKENS, PRESENT)
    for row, length in enumerate((5, 3)):
        alone = whole(TOKENS[row : row + 1, :length])[0]
        np.testing.assert_allclose(np.array(made[row, :length]), np.array(alone), atol=1e-5)


def test_later_tokens_change_earlier_states_where_tokens_see_both_ways() -> None:
    model, other = Embedder(decoder(), both_ways), TOKENS[:1] + mx.array([[0, 0, 0, 0, 1]])
    assert not mx.allclose(model(TOKENS[:1])[:, 0], model(other)[:, 0])


def test_a_classifier_scores_the_last_token() -> None:
    model = DecoderClassifier(decoder(names=Names(decoder="transformer")), present_mask, 3)
    assert {"transformer", "score"} <= set(model)
    states = Embedder(model["transformer"], present_mask)(TOKENS, PRESENT)
    wanted = np.array(states)[[0, 1], [4, 2]] @ np.array(model.score.weight).T
    np.testing.assert_allclose(np.array(model(TOKENS, PRESENT)), wanted, atol=1e-5)
    alone = model(TOKENS[:1])
    np.testing.assert_allclose(np.array(alone), wanted[:1], atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_scores_come_of_the_head_or_of_the_embeddings(tied: bool) -> None:
    whole = decoder(embed_scale=3.0, names=Names("wte", "h", "ln_f", "transformer", "output"))
    model = CausalLM(whole, tied, times(0.5), head_bias=True)
    matrix = whole.wte.weight if tied else model.output.weight
    wanted = np.array(whole(TOKENS)) @ np.array(matrix).T + (0 if tied else np.array(model.output.bias))
    np.testing.assert_allclose(np.array(model(TOKENS)), wanted * 0.5, atol=1e-5)
    first = np.array(whole.embed(TOKENS, model.make_cache()[0], mx.float32))
    np.testing.assert_allclose(first, np.array(whole.wte.weight)[np.array(TOKENS)] * 3, rtol=1e-6)


def test_what_finishes_scores() -> None:
    assert times(1.0) is None and capped(None) is None
    scores, cap = np.array([-9.0, 0.5, 4.0], np.float32), capped(2.0)
    assert cap is not None
    np.testing.assert_allclose(np.array(cap(mx.array(scores))), 2 * np.tanh(scores / 2), rtol=1e-5)
