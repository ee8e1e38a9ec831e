"""A block's work on one token, compiled: as it is without, until something of the block is replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.configs.rope_config import read_rope
from weightloom.plugins.layers import Attention, AttentionShape, Block, FullCache, GatedAttention, GatedMlp, rms_norm
from weightloom.plugins.layers.activations import silu
from weightloom.plugins.layers.blocks import ParallelBlock, PostNormBlock, SandwichBlock
from weightloom.plugins.layers.halves import can_be_halved
from weightloom.plugins.layers.mixing import MixingBlock
from weightloom.plugins.layers.rope import Rope

SHAPE = AttentionShape(8, 4, 2, 4)
ROPE = Rope(read_rope({}, 4, 64)["full_attention"], 4)


HALVED = partial(Block, residual=0.5)


def block(kind: Callable[..., MixingBlock] = HALVED) -> Any:
    mx.random.seed(2)
    made = kind(Attention(SHAPE, ROPE), GatedMlp(8, 6, silu), 8, rms_norm(1e-6))
    mx.eval(made.parameters())
    return made


def answers(made: MixingBlock) -> np.ndarray:
    cache, x = FullCache(), mx.random.normal((2, 5, 8), key=mx.random.key(1))
    first = made(x[:, :3], "causal", cache)
    return np.array(mx.concatenate([first, made(x[:, 3:4], None, cache), made(x[:, 4:], None, cache)], axis=1))


@pytest.mark.parametrize("kind", [HALVED, SandwichBlock, PostNormBlock, ParallelBlock])
def test_answers_are_the_same(kind: Callable[..., MixingBlock]) -> None:
    plain, compiled = block(kind), block(kind)
    assert compiled.compile_steps()
    np.testing.assert_allclose(answers(compiled), answers(plain), atol=1e-5)


def test_what_is_replaced_counts() -> None:
    plain, compiled = block(), block()
    assert compiled.compile_steps()
    answers(compiled)
    for each in (plain, compiled):
        each.mlp.up_proj.weight = each.mlp.up_proj.weight * 2
    np.testing.assert_allclose(answers(compiled), answers(plain), atol=1e-5)
    for each in (plain, compiled):
        each.mlp = GatedMlp(8, 6, lambda x: x)
    compiled.mlp.update(plain.mlp.parameters())
    np.testing.assert_allclose(answers(compiled), answers(plain), atol=1e-5)


def test_attention_with_a_way_of_its_own_is_left() -> None:
    gated = GatedAttention(SHAPE, ROPE, rms_norm(1e-6))
    assert can_be_halved(Attention(SHAPE, ROPE)) and not can_be_halved(gated)
    assert not Block(gated, GatedMlp(8, 6, silu), 8, rms_norm(1e-6)).compile_steps()
