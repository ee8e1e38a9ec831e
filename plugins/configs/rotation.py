"""What rotary position embeddings of every kind have in common, as values and plain arithmetic.

All are of the family of Su et al. (arXiv 2104.09864): pair i of `dims` turns by `theta ** (-2 i / dims)` radians a
position. A kind is a frozen dataclass whose fields are those of the config's section of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from weightloom.plugins.configs.config import refuse_unless

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# NumPy is imported when frequencies are worked out: an architecture that is only looked at has no need of it.
Floats: TypeAlias = "NDArray[np.float64]"

# Far beyond any real setting, and far from where float64 overflows.
HUGE = 1e18


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


class Steady:
    """The common case: the same frequencies at every length, and no factor."""

    __slots__ = ()

    def attention_factor(self, rotation: Rotation) -> float:
        """Give 1."""
        return 1.0

    def context(self, rotation: Rotation, length: int) -> int:
        """Give the trained length, whatever the length."""
        return rotation.trained


def blended(divided: Floats, kept: Floats, weight: Floats) -> Floats:
    """Give what is `divided` where `weight` is 0, what is `kept` where it is 1, and in between a mix."""
    found: Floats = divided * (1.0 - weight) + kept * weight
    return found


def refuse_unless_positive(section: str, name: str, value: float | None) -> None:
    """Raise ConfigError, naming the field of a section, for a number that is not positive, or far out; None is fine."""
    fine = value is None or 1 / HUGE < value < HUGE
    refuse_unless(fine, f"{section}.{name}", value, "a positive number of ordinary size")
