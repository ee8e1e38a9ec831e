"""The value steps of surgery: computed in float32, rounded once to the tensor's own dtype, with no way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from weightloom.engine.errors import NotInvertible
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.surgery.donor import DonorTensor


def irreversible(what: str) -> NotInvertible:
    """Give the error for the way back from a step of surgery."""
    return NotInvertible(
        f"surgery changed the values: {what}",
        expected="a plan without surgery",
        hint='save in a named layout, such as "hf": that is a new checkpoint',
        rule=what,
    )


@dataclass(frozen=True, slots=True)
class Scaled:
    """Slot `at` (F16, BF16 or F32) times a factor; `what` names the operation."""

    elementwise: ClassVar[bool] = True

    at: int
    factor: float
    what: str
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Multiply."""
        import mlx.core as mx

        return ((arrays[0].astype(mx.float32) * self.factor).astype(arrays[0].dtype),)

    def inverse(self) -> Scaled:
        """Raise NotInvertible: the product is rounded."""
        raise irreversible(self.what)


@dataclass(frozen=True, slots=True)
class Added:
    """Slot `at` plus `alpha` times a donor's tensor of the same shape."""

    at: int
    donor: DonorTensor
    alpha: float
    what: str
    arity: int = 1

    @property
    def beside_bytes(self) -> int:
        """Bytes of the donor's tensor while it is computed with."""
        return self.donor.beside_bytes

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Add."""
        import mlx.core as mx

        term = self.donor.read().astype(mx.float32) * self.alpha
        return ((arrays[0].astype(mx.float32) + term).astype(arrays[0].dtype),)

    def inverse(self) -> Added:
        """Raise NotInvertible: the sum is rounded."""
        raise irreversible(self.what)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A donor's tensor, of the same dtype and shape, in the place of slot `at`; its bits are kept."""

    at: int
    donor: DonorTensor
    what: str
    arity: int = 1

    @property
    def beside_bytes(self) -> int:
        """Bytes of the donor's tensor while it is computed with."""
        return self.donor.beside_bytes

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Read the donor's."""
        return (self.donor.read(),)

    def inverse(self) -> Replaced:
        """Raise NotInvertible: what stood there is gone."""
        raise irreversible(self.what)
