"""The kinds of rotary position embeddings: how each spreads its frequencies, as values and plain arithmetic.

All are of the family of Su et al. (arXiv 2104.09864): pair i of `dims` turns by `theta ** (-2 i / dims)` radians a
position. A kind is a frozen dataclass whose fields are those of the config's section of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log, pi, sqrt
from typing import TYPE_CHECKING, Protocol, TypeAlias

from weightloom.plugins.configs.config import refuse_unless

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# NumPy is imported when frequencies are worked out: an architecture that is only looked at has no need of it.
Floats: TypeAlias = "NDArray[np.float64]"

# Far beyond any real setting, and far from where float64 overflows.
_HUGE = 1e18


@dataclass(frozen=True, slots=True)
class Rotation:
    """What every kind starts from: the base, the number of dims that turn, the positions a model was trained on."""

    theta: float
    dims: int
    trained: int

    def plain(self) -> Floats:
        """Give the turn of each pair in radians a position, (dims / 2,)."""
        import numpy as np

        return np.asarray(self.theta ** (-np.arange(0, self.dims, 2, dtype=np.float64) / self.dims))


class RopeKind(Protocol):
    """A kind: frequencies for a context length, a factor on queries and keys, and a check of its fields."""

    def check(self, section: str) -> None:
        """Raise ConfigError, naming `section` and the field, for a value that no frequency can come from."""
        ...

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give radians a position, (dims / 2,), for a context of `length` positions."""
        ...

    def attention_factor(self, rotation: Rotation) -> float:
        """Give the factor on the turned part of queries and keys."""
        ...

    def context(self, rotation: Rotation, length: int) -> int:
        """Give the length that decides the frequencies: equal for two lengths whose frequencies are equal."""
        ...


class _Constant:
    """The common case: the same frequencies at every length, and no factor."""

    __slots__ = ()

    def attention_factor(self, rotation: Rotation) -> float:
        """Give 1."""
        return 1.0

    def context(self, rotation: Rotation, length: int) -> int:
        """Give the trained length, whatever the length."""
        return rotation.trained


@dataclass(frozen=True, slots=True)
class DefaultRope(_Constant):
    """The plain frequencies."""

    def check(self, section: str) -> None:
        """Nothing to check."""

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies."""
        return rotation.plain()


@dataclass(frozen=True, slots=True)
class LinearRope(_Constant):
    """Positions divided by a factor (position interpolation, arXiv 2306.15595)."""

    factor: float

    def check(self, section: str) -> None:
        """Raise ConfigError unless the factor is positive."""
        _positive(section, "factor", self.factor)

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies over the factor."""
        return rotation.plain() / self.factor


@dataclass(frozen=True, slots=True)
class ProportionalRope(_Constant):
    """A share of the pairs turns, at the frequencies that they have among all; the others stay (Gemma 4).

    The share is of the pairs of whole heads, so `dims` are those of a head. Frequencies are divided by a factor.
    """

    partial_rotary_factor: float = 1.0
    factor: float = 1.0

    def check(self, section: str) -> None:
        """Raise ConfigError unless the share is one, and the factor positive."""
        share = self.partial_rotary_factor
        refuse_unless(0 < share <= 1, f"{section}.partial_rotary_factor", share, "more than 0, 1 at most")
        _positive(section, "factor", self.factor)

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies over the factor, and 0 for the pairs that stay."""
        found = rotation.plain() / self.factor
        found[int(self.partial_rotary_factor * rotation.dims // 2) :] = 0.0
        return found


@dataclass(frozen=True, slots=True)
class DynamicRope:
    """The base grows with the context once that is longer than the trained one (dynamic NTK scaling).

    base = theta * (factor * n / trained - (factor - 1)) ** (dims / (dims - 2)), n the context's length. With an
    `alpha`, as Hunyuan's configs have it, that stands for the whole bracket, and the base is the same at every length.
    """

    factor: float
    alpha: float | None = None

    def check(self, section: str) -> None:
        """Raise ConfigError unless the factor, and alpha if any, is positive."""
        _positive(section, "factor", self.factor)
        _positive(section, "alpha", self.alpha)

    def context(self, rotation: Rotation, length: int) -> int:
        """Give the length, or the trained one where that is longer or an `alpha` decides."""
        return max(length, rotation.trained) if self.alpha is None else rotation.trained

    def attention_factor(self, rotation: Rotation) -> float:
        """Give 1."""
        return 1.0

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies of the grown base."""
        grown = self.factor * self.context(rotation, length) / rotation.trained - (self.factor - 1)
        stretch = grown if self.alpha is None else self.alpha
        # Two dims have one frequency, 1, under any base.
        power = rotation.dims / max(rotation.dims - 2, 1)
        return Rotation(rotation.theta * stretch**power, rotation.dims, rotation.trained).plain()


@dataclass(frozen=True, slots=True)
class Llama3Rope(_Constant):
    """Long waves divided by a factor, short ones kept, those between blended (Llama 3.1's published definition).

    A wave is long if it is longer than original / low_freq_factor, short below original / high_freq_factor.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int | None = None

    def check(self, section: str) -> None:
        """Raise ConfigError unless the factors are positive and the high one is the higher."""
        for name in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"):
            _positive(section, name, getattr(self, name))
        refuse_unless(
            self.high_freq_factor > self.low_freq_factor,
            f"{section}.high_freq_factor",
            self.high_freq_factor,
            f"more than low_freq_factor, {self.low_freq_factor}",
        )

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give frequencies kept, divided or blended by wavelength."""
        plain = rotation.plain()
        turns = (self.original_max_position_embeddings or rotation.trained) * plain / (2 * pi)
        kept = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        return _blend(plain / self.factor, plain, kept.clip(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class YarnRope:
    """YaRN (arXiv 2309.00071): pairs that turn often are kept, those that turn rarely divided, a ramp between.

    `attention_factor`, else the quotient of `mscale` and `mscale_all_dim`, else the paper's 0.1 ln(factor) + 1,
    scales queries and keys. `truncate` rounds the ends of the ramp outwards to whole pairs.
    """

    factor: float | None = None
    original_max_position_embeddings: int | None = None
    given_attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True

    def check(self, section: str) -> None:
        """Raise ConfigError unless the numbers are positive."""
        for name in ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow"):
            _positive(section, name, getattr(self, name))
        for name in ("mscale", "mscale_all_dim"):
            value = getattr(self, name)
            refuse_unless(value is None or 0 <= value < _HUGE, f"{section}.{name}", value, "0 or more")
        _positive(section, "attention_factor", self.given_attention_factor)

    def context(self, rotation: Rotation, length: int) -> int:
        """Give the trained length, whatever the length."""
        return rotation.trained

    def attention_factor(self, rotation: Rotation) -> float:
        """Give the factor that is given, or follows from the scale."""
        if self.given_attention_factor is not None:
            return self.given_attention_factor
        if self.mscale and self.mscale_all_dim:
            return self.temperature(rotation, self.mscale) / self.temperature(rotation, self.mscale_all_dim)
        return self.temperature(rotation, 1.0)

    def temperature(self, rotation: Rotation, mscale: float) -> float:
        """Give 0.1 mscale ln(factor) + 1; 1 where nothing is stretched."""
        factor = self._factor(rotation)
        return 1.0 if factor <= 1 else 0.1 * mscale * log(factor) + 1.0

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give frequencies blended along the ramp."""
        import numpy as np

        first, last = self._ramp(rotation)
        pairs = np.arange(rotation.dims // 2, dtype=np.float64)
        kept = 1.0 - ((pairs - first) / (last - first)).clip(0.0, 1.0)
        plain = rotation.plain()
        return _blend(plain / self._factor(rotation), plain, kept)

    def _factor(self, rotation: Rotation) -> float:
        return self.factor if self.factor is not None else rotation.trained / self._original(rotation)

    def _original(self, rotation: Rotation) -> int:
        return self.original_max_position_embeddings or rotation.trained

    def _ramp(self, rotation: Rotation) -> tuple[float, float]:
        """Give the pairs between which the ramp goes, by how often they turn over the original context."""
        first, last = (self._pair_of(turns, rotation) for turns in (self.beta_fast, self.beta_slow))
        if self.truncate:
            first, last = floor(first), ceil(last)
        first, last = max(first, 0), min(last, rotation.dims - 1)
        return first, last + 0.001 if last == first else last

    def _pair_of(self, turns: float, rotation: Rotation) -> float:
        """Give the pair, as a fraction, that makes so many full turns over the original context."""
        return rotation.dims * log(self._original(rotation) / (2 * pi * turns)) / (2 * log(rotation.theta))


@dataclass(frozen=True, slots=True)
class LongRope:
    """LongRoPE (arXiv 2402.13753): each pair divided by a number of its own, one list for short contexts, one for long.

    A context is long beyond `original_max_position_embeddings`. `factor`, else what the context has grown by, gives the
    factor on queries and keys, sqrt(1 + ln(factor) / ln(original)), unless `attention_factor` does.
    """

    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    factor: float | None = None
    original_max_position_embeddings: int | None = None
    given_attention_factor: float | None = None

    def check(self, section: str) -> None:
        """Raise ConfigError unless the numbers are positive."""
        for name in ("short_factor", "long_factor"):
            fine = all(1 / _HUGE < each < _HUGE for each in getattr(self, name))
            refuse_unless(fine, f"{section}.{name}", getattr(self, name), "positive numbers of ordinary size")
        _positive(section, "factor", self.factor)
        _positive(section, "attention_factor", self.given_attention_factor)
        # The factor is over the logarithm of this.
        original = self.original_max_position_embeddings
        fine = original is None or 1 < original < _HUGE
        refuse_unless(fine, f"{section}.original_max_position_embeddings", original, "more than 1")

    def check_dims(self, section: str, dims: int) -> None:
        """Raise ConfigError unless there is a number for each pair of `dims`."""
        for name in ("short_factor", "long_factor"):
            count = len(getattr(self, name))
            refuse_unless(count == dims // 2, f"{section}.{name}", f"a list of {count}", f"{dims // 2} numbers")

    def context(self, rotation: Rotation, length: int) -> int:
        """Give a length that stands for all short contexts, or for all long ones; the trained one is one of the two."""
        original = self._original(rotation)
        return max(rotation.trained, original + 1) if length > original else min(rotation.trained, original)

    def attention_factor(self, rotation: Rotation) -> float:
        """Give the factor that is given, or follows from how much the context has grown."""
        if self.given_attention_factor is not None:
            return self.given_attention_factor
        original = self._original(rotation)
        factor = self.factor if self.factor is not None else rotation.trained / original
        return 1.0 if factor <= 1 else sqrt(1 + log(factor) / log(original))

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies over the numbers for a context of this length."""
        import numpy as np

        chosen = self.long_factor if length > self._original(rotation) else self.short_factor
        return np.asarray(rotation.plain() / np.asarray(chosen, dtype=np.float64))

    def _original(self, rotation: Rotation) -> int:
        return self.original_max_position_embeddings or rotation.trained


def _blend(divided: Floats, kept: Floats, weight: Floats) -> Floats:
    blended: Floats = divided * (1.0 - weight) + kept * weight
    return blended


def _positive(section: str, name: str, value: float | None) -> None:
    fine = value is None or 1 / _HUGE < value < _HUGE
    refuse_unless(fine, f"{section}.{name}", value, "a positive number of ordinary size")
