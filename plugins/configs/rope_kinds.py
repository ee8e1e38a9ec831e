"""Kinds of rotary position embeddings that a few numbers decide: plain, linear, proportional, dynamic, Llama 3's."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.rotation import Floats, Rotation, Steady, blended, refuse_unless_positive


@dataclass(frozen=True, slots=True)
class DefaultRope(Steady):
    """The plain frequencies."""

    def check(self, section: str) -> None:
        """Nothing to check."""

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies."""
        return rotation.plain()


@dataclass(frozen=True, slots=True)
class LinearRope(Steady):
    """Positions divided by a factor (position interpolation, arXiv 2306.15595)."""

    factor: float

    def check(self, section: str) -> None:
        """Raise ConfigError unless the factor is positive."""
        refuse_unless_positive(section, "factor", self.factor)

    def frequencies(self, rotation: Rotation, length: int) -> Floats:
        """Give the plain frequencies over the factor."""
        return rotation.plain() / self.factor


@dataclass(frozen=True, slots=True)
class ProportionalRope(Steady):
    """A share of the pairs turns, at the frequencies that they have among all; the others stay (Gemma 4).

    The share is of the pairs of whole heads, so `dims` are those of a head. Frequencies are divided by a factor.
    """

    partial_rotary_factor: float = 1.0
    factor: float = 1.0

    def check(self, section: str) -> None:
        """Raise ConfigError unless the share is one, and the factor positive."""
        share = self.partial_rotary_factor
        refuse_unless(0 < share <= 1, f"{section}.partial_rotary_factor", share, "more than 0, 1 at most")
        refuse_unless_positive(section, "factor", self.factor)

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
        refuse_unless_positive(section, "factor", self.factor)
        refuse_unless_positive(section, "alpha", self.alpha)

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
class Llama3Rope(Steady):
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
            refuse_unless_positive(section, name, getattr(self, name))
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
        return blended(plain / self.factor, plain, kept.clip(0.0, 1.0))
