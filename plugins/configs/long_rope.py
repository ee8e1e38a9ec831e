"""LongRoPE: a kind of rotary position embeddings with a number for each pair, for short contexts and for long ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.rotation import HUGE, Floats, Rotation, refuse_unless_positive


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
            fine = all(1 / HUGE < each < HUGE for each in getattr(self, name))
            refuse_unless(fine, f"{section}.{name}", getattr(self, name), "positive numbers of ordinary size")
        refuse_unless_positive(section, "factor", self.factor)
        refuse_unless_positive(section, "attention_factor", self.given_attention_factor)
        # The factor is over the logarithm of this.
        original = self.original_max_position_embeddings
        fine = original is None or 1 < original < HUGE
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
