"""PLaMo 2: which layers attend, and how far back; mlx-lm, its reference, knows no windows."""

import mlx.core as mx
import pytest

from weightloom.plugins.architectures.plamo2 import PLAMO2, Fields

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size_per_head": 8,
}


@pytest.mark.parametrize(
    ("layers", "step", "enabled", "attending"),
    [(6, 2, True, [1, 3, 5]), (7, 3, True, [1, 4]), (9, 8, True, [4]), (3, 8, True, [2]), (3, 2, False, [0, 1, 2])],
)
def test_which_layers_attend(layers: int, step: int, enabled: bool, attending: list[int]) -> None:
    fields = Fields(num_hidden_layers=layers, mamba_step=step, mamba_enabled=enabled)
    assert [layer for layer in range(layers) if fields.attends(layer)] == attending


@pytest.mark.parametrize("full", [False, True])
def test_a_window_is_the_tokens_before_and_the_token_itself(full: bool) -> None:
    idx = [0] if full else []
    config = {**SMALL, "num_hidden_layers": 1, "mamba_enabled": False, "attention_window_size": 5}
    model = PLAMO2.build(PLAMO2.read_config({**config, "full_attention_idx": idx}))
    tokens = mx.arange(1, 13)[None]
    last = model(tokens)[:, -1]
    for position in range(12):
        changed = model(tokens.at[:, position].add(30))[:, -1]
        seen = full or position >= 12 - 1 - 5
        assert mx.allclose(changed, last, atol=1e-6).item() != seen, position
