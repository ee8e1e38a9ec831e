"""Algebra: what moves need from the thing they move. One for views (plans), one for NumPy arrays (data)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from weightloom.engine.views.tiles import Shape
from weightloom.engine.views.view import View

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")
Array: TypeAlias = "npt.NDArray[Any]"


class Algebra(Protocol[T]):
    """Four ways to move elements; dims are >= 0 and fit, since inference has checked them."""

    def reshape(self, x: T, shape: Shape) -> T:
        """Give the elements of `x`, in row-major order, under another shape."""
        ...

    def permute(self, x: T, axes: Shape) -> T:
        """Put dim `axes[i]` of `x` in place i."""
        ...

    def cut(self, x: T, dim: int, start: int, stop: int) -> T:
        """Give rows [start, stop) of one dim."""
        ...

    def join(self, xs: Sequence[T], dim: int) -> T:
        """Lay `xs` one behind the other along one dim."""
        ...


class ViewAlgebra:
    """Moves views: composes index maps and touches no data."""

    def reshape(self, x: View, shape: Shape) -> View:
        """Reshape a view."""
        return x.reshape(shape)

    def permute(self, x: View, axes: Shape) -> View:
        """Permute a view."""
        return x.permute(axes)

    def cut(self, x: View, dim: int, start: int, stop: int) -> View:
        """Cut a view."""
        return x.cut(dim, start, stop)

    def join(self, xs: Sequence[View], dim: int) -> View:
        """Join views."""
        return View.join(xs, dim)


class NumpyAlgebra:
    """Moves NumPy arrays of any dtype, one array element for one element of the tensor."""

    def reshape(self, x: Array, shape: Shape) -> Array:
        """Reshape an array."""
        return x.reshape(shape)

    def permute(self, x: Array, axes: Shape) -> Array:
        """Permute an array."""
        return x.transpose(axes)

    def cut(self, x: Array, dim: int, start: int, stop: int) -> Array:
        """Cut an array; the result shares its memory."""
        return x[(slice(None),) * dim + (slice(start, stop),)]

    def join(self, xs: Sequence[Array], dim: int) -> Array:
        """Join arrays."""
        import numpy as np  # here, so that plans are made without NumPy

        joined: np.ndarray[Any, Any] = np.concatenate(list(xs), axis=dim)
        return joined
