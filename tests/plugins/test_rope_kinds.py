"""Frequencies against formulas written out pair by pair."""

from math import ceil, floor, log, pi

import numpy as np
import pytest

from weightloom.plugins.configs.long_rope import LongRope
from weightloom.plugins.configs.rope_kinds import DefaultRope, DynamicRope, LinearRope, Llama3Rope, ProportionalRope
from weightloom.plugins.configs.rotation import Rotation
from weightloom.plugins.configs.yarn_rope import YarnRope

ROTATION = Rotation(theta=5000.0, dims=16, trained=64)
PLAIN = [5000.0 ** (-2 * pair / 16) for pair in range(8)]


def close(got: object, wanted: list[float]) -> None:
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)


def test_default() -> None:
    close(DefaultRope().frequencies(ROTATION, 10), PLAIN)
    assert DefaultRope().attention_factor(ROTATION) == 1.0


def test_linear() -> None:
    close(LinearRope(4.0).frequencies(ROTATION, 10), [each / 4 for each in PLAIN])


def test_proportional_turns_a_share_of_the_pairs_and_leaves_the_others() -> None:
    close(ProportionalRope(0.25, 2.0).frequencies(ROTATION, 10), [PLAIN[0] / 2, PLAIN[1] / 2] + [0.0] * 6)
    close(ProportionalRope().frequencies(ROTATION, 10), PLAIN)


def test_dynamic_is_plain_up_to_the_trained_length() -> None:
    close(DynamicRope(2.0).frequencies(ROTATION, 64), PLAIN)
    assert DynamicRope(2.0).context(ROTATION, 10) == DynamicRope(2.0).context(ROTATION, 64) == 64


def test_dynamic_grows_its_base_beyond() -> None:
    base = 5000.0 * (2.0 * 96 / 64 - 1.0) ** (16 / 14)
    close(DynamicRope(2.0).frequencies(ROTATION, 96), [base ** (-2 * pair / 16) for pair in range(8)])
    assert DynamicRope(2.0).context(ROTATION, 96) == 96


def test_dynamic_with_an_alpha_is_the_same_at_every_length() -> None:
    base = 5000.0 * 30.0 ** (16 / 14)
    kind = DynamicRope(2.0, alpha=30.0)
    for length in (10, 96):
        close(kind.frequencies(ROTATION, length), [base ** (-2 * pair / 16) for pair in range(8)])
        assert kind.context(ROTATION, length) == 64


def test_dynamic_of_two_dims() -> None:
    close(DynamicRope(2.0).frequencies(Rotation(100.0, 2, 8), 16), [1.0])


def test_llama3() -> None:
    wanted = []
    for each in PLAIN:
        wave = 2 * pi / each
        if wave < 32 / 4.0:
            wanted.append(each)
        elif wave > 32 / 1.0:
            wanted.append(each / 8)
        else:
            smooth = (32 / wave - 1.0) / (4.0 - 1.0)
            wanted.append((1 - smooth) * each / 8 + smooth * each)
    close(Llama3Rope(8.0, 1.0, 4.0, 32).frequencies(ROTATION, 10), wanted)
    assert len({*wanted} & {*PLAIN}) not in (0, 8)


def yarn(kind: YarnRope, original: int, factor: float, truncate: bool) -> list[float]:
    first, last = (
        16 * log(original / (turns * 2 * pi)) / (2 * log(5000.0)) for turns in (kind.beta_fast, kind.beta_slow)
    )
    if truncate:
        first, last = floor(first), ceil(last)
    first, last = max(first, 0), min(last, 15)
    wanted = []
    for pair, each in enumerate(PLAIN):
        ramp = min(max((pair - first) / (last - first), 0), 1)
        wanted.append(each / factor * ramp + each * (1 - ramp))
    return wanted


@pytest.mark.parametrize("truncate", [True, False])
def test_yarn(truncate: bool) -> None:
    kind = YarnRope(4.0, 2048, truncate=truncate)
    close(kind.frequencies(ROTATION, 10), yarn(kind, 2048, 4.0, truncate))


def test_yarn_takes_its_factor_from_the_two_lengths() -> None:
    kind = YarnRope(None, 16)
    assert kind.attention_factor(ROTATION) == YarnRope(4.0, 16).attention_factor(ROTATION)
    close(kind.frequencies(ROTATION, 1), list(YarnRope(4.0, 16).frequencies(ROTATION, 1)))


def test_yarn_with_a_ramp_of_no_length() -> None:
    kind = YarnRope(4.0, 16, beta_fast=1e6, beta_slow=1e6)
    assert np.isfinite(kind.frequencies(ROTATION, 1)).all()


def test_yarn_attention_factors() -> None:
    assert YarnRope(4.0).attention_factor(ROTATION) == pytest.approx(0.1 * log(4) + 1)
    assert YarnRope(0.5).attention_factor(ROTATION) == 1.0
    assert YarnRope(4.0, given_attention_factor=1.3).attention_factor(ROTATION) == 1.3
    both = YarnRope(4.0, mscale=1.2, mscale_all_dim=0.7).attention_factor(ROTATION)
    assert both == pytest.approx((0.12 * log(4) + 1) / (0.07 * log(4) + 1))
    assert YarnRope(4.0, mscale=1.2).attention_factor(ROTATION) == YarnRope(4.0).attention_factor(ROTATION)


def test_longrope_divides_each_pair_by_its_own_number() -> None:
    short, long = tuple(range(1, 9)), tuple(range(11, 19))
    kind = LongRope(short, long, original_max_position_embeddings=16)
    for length, factors in ((16, short), (17, long)):
        close(kind.frequencies(ROTATION, length), [each / by for each, by in zip(PLAIN, factors, strict=True)])
    assert kind.attention_factor(ROTATION) == pytest.approx((1 + log(4) / log(16)) ** 0.5)
    assert LongRope(short, long, factor=0.5, original_max_position_embeddings=16).attention_factor(ROTATION) == 1.0
    assert LongRope(short, long, given_attention_factor=1.3).attention_factor(ROTATION) == 1.3


def test_longrope_knows_two_contexts() -> None:
    kind = LongRope((1.0,) * 8, (2.0,) * 8, original_max_position_embeddings=16)
    assert [kind.context(ROTATION, length) for length in (1, 16, 17, 64, 100)] == [16, 16, 64, 64, 64]
    unknown = LongRope((1.0,) * 8, (2.0,) * 8)
    assert [unknown.context(ROTATION, length) for length in (1, 64, 65, 100)] == [64, 64, 65, 65]
