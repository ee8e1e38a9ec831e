"""GPT-2's own: an embedding for each position, and no further one."""

import mlx.core as mx
import pytest

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.plugins.architectures.gpt2 import build, read_config
from weightloom.plugins.layers.decoder import CausalLM

CONFIG = {"vocab_size": 16, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 6}


def model() -> CausalLM:
    mx.random.seed(5)
    return build(read_config(CONFIG))


def test_tokens_beyond_the_last_position_are_refused() -> None:
    made, cache = model(), model().make_cache()
    made(mx.ones((1, 6), mx.int32), cache)
    for tokens, caches in ((mx.ones((1, 7), mx.int32), None), (mx.ones((1, 1), mx.int32), cache)):
        with pytest.raises(UsageError, match="7 tokens") as caught:
            made(tokens, caches)
        assert caught.value.field == "n_positions"


def test_a_model_that_looks_at_an_encoder_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config({**CONFIG, "add_cross_attention": True})
    assert caught.value.field == "add_cross_attention"
