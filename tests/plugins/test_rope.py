"""Turning heads, against pairs turned one by one."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.configs.rope_config import RopeConfig
from weightloom.plugins.configs.rope_kinds import DefaultRope, DynamicRope
from weightloom.plugins.configs.rotation import RopeKind, Rotation
from weightloom.plugins.configs.yarn_rope import YarnRope
from weightloom.plugins.layers.rope import Rope, interleaved


def turned(x: np.ndarray, kind: RopeKind, rotation: Rotation, offset: int, length: int) -> np.ndarray:
    """Pair i is dims i and i + dims / 2."""
    out, half = x.astype(np.float64), rotation.dims // 2
    factor = kind.attention_factor(rotation)
    for place in range(x.shape[2]):
        for pair, frequency in enumerate(kind.frequencies(rotation, length)):
            cos, sin = np.cos((offset + place) * frequency) * factor, np.sin((offset + place) * frequency) * factor
            a, b = x[:, :, place, pair].astype(np.float64), x[:, :, place, pair + half].astype(np.float64)
            out[:, :, place, pair], out[:, :, place, pair + half] = a * cos - b * sin, b * cos + a * sin
    return out


@pytest.mark.parametrize("dims", [8, 4])
@pytest.mark.parametrize("offset", [0, 5, 60])
@pytest.mark.parametrize("kind", [DefaultRope(), DynamicRope(2.0), YarnRope(4.0, 16)], ids=repr)
def test_values(kind: RopeKind, dims: int, offset: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 8)).astype(np.float32)
    rotation = Rotation(100.0, dims, 64)
    got = np.array(Rope(RopeConfig(rotation, kind), 8)(mx.array(x), offset))
    np.testing.assert_allclose(got, turned(x, kind, rotation, offset, offset + 9), atol=2e-5)


@pytest.mark.parametrize("offset", [3, mx.array([3, 0])], ids=["one", "a row"])
def test_neighbours_turn_against_each_other_where_interleaved(offset: int | mx.array) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 8)).astype(np.float32)
    rotation = Rotation(100.0, 6, 64)
    got = np.array(interleaved(RopeConfig(rotation, YarnRope(4.0, 16)), 8)(mx.array(x), offset))
    order = [0, 2, 4, 1, 3, 5, 6, 7]
    for row, first in enumerate((3, 3) if isinstance(offset, int) else (3, 0)):
        wanted = turned(x[row : row + 1, :, :, order], YarnRope(4.0, 16), rotation, first, 64)
        np.testing.assert_allclose(got[row : row + 1, :, :, order], wanted, atol=2e-5)


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16, mx.float32])
def test_the_dtype_stays_and_the_angle_is_float32s(dtype: mx.Dtype) -> None:
    rope = Rope(RopeConfig(Rotation(10000.0, 8, 64), DefaultRope()), 8)
    x = mx.ones((1, 1, 1, 8), dtype)
    got = rope(x, 4001)
    assert got.dtype == dtype
    assert abs(got[0, 0, 0, 0].item() - (np.cos(4001) - np.sin(4001))) < 0.02


@pytest.mark.parametrize("kind", [DefaultRope(), DynamicRope(2.0), YarnRope(4.0, 16)], ids=repr)
def test_queries_and_keys_turn_together_as_they_do_alone(kind: RopeKind) -> None:
    numbers = np.random.default_rng(0)
    queries = mx.array(numbers.standard_normal((2, 4, 3, 8)).astype(np.float32)).astype(mx.bfloat16)
    keys = mx.array(numbers.standard_normal((2, 2, 3, 8)).astype(np.float32))
    rope, offset = Rope(RopeConfig(Rotation(100.0, 6, 64), kind), 8), mx.array([70, 2])
    first, second = rope.both(queries, keys, offset)
    assert (first.dtype, second.dtype) == (mx.bfloat16, mx.float32)
    assert mx.array_equal(first, rope(queries, offset)).item()
    assert mx.array_equal(second, rope.kept(keys, offset)).item()
