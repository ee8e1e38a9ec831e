"""What all codings check: dtypes and shapes before a byte is read, scales when they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

SCALES = ("F32", "BF16", "F16")
_NO_POWER = 255
_NO_E4M3 = 0x7F


def check_part(role: str, spec: TensorSpec, dtypes: Collection[str], shape: Shape | None = None) -> None:
    """Raise PlanError unless a tensor has one of the dtypes and, where one is given, the shape."""
    if spec.dtype not in dtypes or (shape is not None and spec.shape != shape):
        wanted = " or ".join(dtypes)
        raise PlanError(
            f"the {role} of a quantized weight is {spec}",
            expected=wanted if shape is None else f"{wanted} {list(shape)}",
            hint="get the file that belongs to the config, or correct quantization_config",
            field="quantization_config",
        )


def check_matrix(role: str, spec: TensorSpec) -> None:
    """Raise PlanError unless a tensor has rows and columns, and some of each."""
    if len(spec.shape) < 2 or 0 in spec.shape:
        raise PlanError(f"the {role} of a quantized weight is {spec}", expected="rows and columns, one at least")


def check_numbers(scales: mx.array) -> mx.array:
    """Give scales back; raises PlanError for one that is not finite."""
    import mlx.core as mx

    if not mx.all(mx.isfinite(scales)).item():
        raise PlanError(
            "a scale is not a finite number",
            expected="scales that are numbers",
            hint="get the checkpoint anew: the file is damaged, or was written by a broken tool",
        )
    return scales


def check_wide(values: mx.array) -> mx.array:
    """Give values of F8_E5M2, which has infinities, back; raises PlanError for one, which no other form has."""
    import mlx.core as mx

    if mx.any(mx.isinf(values)).item():
        raise PlanError(
            "a code is infinite",
            expected="codes of weights that are numbers",
            hint="get the checkpoint anew: the file is damaged, or was written by a broken tool",
        )
    return values


def check_powers(scales: mx.array) -> mx.array:
    """Give powers of two (F8_E8M0) back; raises PlanError for the one that is no number."""
    import mlx.core as mx

    if mx.any(scales == _NO_POWER).item():
        check_numbers(mx.array([mx.nan]))
    return scales


def check_e4m3(scales: mx.array) -> mx.array:
    """Give scales in F8_E4M3 back; raises PlanError for one that is no number."""
    import mlx.core as mx

    if mx.any((scales & _NO_E4M3) == _NO_E4M3).item():
        check_numbers(mx.array([mx.nan]))
    return scales
