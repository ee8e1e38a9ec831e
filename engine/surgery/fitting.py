"""Whether a donor has what an operation takes from it."""

from __future__ import annotations

from collections.abc import Mapping

from weightloom.engine.errors import PlanError
from weightloom.engine.show import listed
from weightloom.engine.spec import TensorSpec
from weightloom.engine.surgery.donor import Donor, DonorTensor
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Operation


def donated(
    operation: Operation, names: Names, keys: Mapping[str, str], donor: Donor, dtypes: tuple[str, ...] | None
) -> dict[str, DonorTensor]:
    """Give, by the name of each tensor, the donor's tensor under its key, of the same shape.

    Its dtype is one of `dtypes`, or where that is None the same. Raises PlanError that lists all that does not fit.
    """
    lacking = sorted(key for key in keys.values() if key not in donor.specs)
    if lacking:
        raise _misfit(
            operation,
            donor,
            lacking[0],
            f"the donor has no {listed(lacking)}",
            f"it has {listed(sorted(donor.specs), 3)}",
        )
    wrong = {name: key for name, key in keys.items() if not _fits(names.specs[name], donor.specs[key], dtypes)}
    if wrong:
        said = "; ".join(
            f"{key} is {donor.specs[key]} for {names.specs[name]}" for name, key in list(wrong.items())[:8]
        )
        rest = f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        wanted = "the same dtype and shape" if dtypes is None else f"the same shape, in one of {', '.join(dtypes)}"
        raise _misfit(operation, donor, next(iter(wrong)), said + rest, wanted)
    return {name: DonorTensor(donor, key) for name, key in keys.items()}


def _fits(spec: TensorSpec, other: TensorSpec, dtypes: tuple[str, ...] | None) -> bool:
    if spec.shape != other.shape:
        return False
    return spec.dtype == other.dtype if dtypes is None else other.dtype in dtypes


def _misfit(operation: Operation, donor: Donor, tensor: str, seen: str, expected: str) -> PlanError:
    return PlanError(
        f"{operation.title}: {seen} [{donor.path}]",
        expected=expected,
        file=None if operation.place is None else str(operation.place),
        tensor=tensor,
        rule=operation.title,
    )
