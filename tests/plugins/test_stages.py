"""What one stage of layers hands to the next."""

import mlx.core as mx
import pytest

from weightloom.plugins.layers.stages import Stage


@pytest.mark.parametrize("made", [mx.float32, mx.bfloat16])
def test_what_is_handed_over_has_the_models_own_dtype(made: mx.Dtype) -> None:
    stage = Stage(mx.distributed.init())
    given = stage.give(mx.arange(6).reshape(1, 2, 3).astype(made), mx.bfloat16)
    assert given.dtype == mx.bfloat16
    assert given.tolist() == [[[0, 1, 2], [3, 4, 5]]]
