"""YaRN: a kind of rotary position embeddings whose pairs are stretched by how often they turn."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log, pi

from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.rotation import HUGE, Floats, Rotation, blended, refuse_unless_positive


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
            refuse_unless_positive(section, name, getattr(self, name))
        for name in ("mscale", "mscale_all_dim"):
            value = getattr(self, name)
            refuse_unless(value is None or 0 <= value < HUGE, f"{section}.{name}", value, "0 or more")
        refuse_unless_positive(section, "attention_factor", self.given_attention_factor)

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
        return blended(plain / self._factor(rotation), plain, kept)

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
