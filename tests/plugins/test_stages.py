"""What one stage of layers hands to the next."""

import mlx.core as mx
import pytest

from weightloom.plugins.layers.stages import Elsewhere, Stage


class Group:
    """What a group of processes says of itself."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size


@pytest.mark.parametrize(("count", "size"), [(6, 3), (7, 3), (8, 3), (2, 3), (5, 1)])
def test_layers_are_shared_out_in_order(count: int, size: int) -> None:
    own = [list(Stage(Group(rank, size)).layers(count)) for rank in range(size)]
    assert [layer for each in own for layer in each] == list(range(count))
    assert max(map(len, own)) - min(map(len, own)) <= 1


def test_a_layer_that_is_elsewhere_counts() -> None:
    layer, x = Elsewhere(3), mx.ones((1, 4, 2))
    cache = layer.make_cache()
    assert layer(x, None, cache) is x and cache.offset == 4
    assert layer.window == 3 and not layer.parameters()


@pytest.mark.parametrize("made", [mx.float32, mx.bfloat16])
def test_what_is_handed_over_has_the_models_own_dtype(made: mx.Dtype) -> None:
    stage = Stage(mx.distributed.init())
    given = stage.give(mx.arange(6).reshape(1, 2, 3).astype(made), mx.bfloat16)
    assert given.dtype == mx.bfloat16
    assert given.tolist() == [[[0, 1, 2], [3, 4, 5]]]
