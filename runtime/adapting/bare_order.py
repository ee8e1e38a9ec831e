"""Over which dim the factors of a stack of experts are: shapes tell, and of square ones what stands beside them.

Format: huggingface/peft 0.21, `tuners/lora/layer.py`, `ParamWrapper`. Up to 0.18 A is over the rows of (E, rows,
columns) and B over its columns; from 0.19 on (huggingface/peft#3083) A is over columns and B over rows, as of a linear
layer, except for experts that are stored (in, out), of which A is over rows in every version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from weightloom.engine import TensorSpec
from weightloom.engine.errors import PlanError
from weightloom.runtime.adapting.bare_parameter import Bare, is_stack

_LATER = (0, 19)


def settled(found: Sequence[Bare], params: Mapping[str, TensorSpec], version: str | None) -> tuple[Bare, ...]:
    """Settle how the factors of square stacks lie.

    The other factors of the file tell, then the biases of the module, which have a number for each output, then the
    recorded version. Raises PlanError where none of them does.
    """
    stacks = [each for each in found if is_stack(each.spec)]
    square = [each for each in stacks if each.is_square]
    if not square:
        return tuple(found)
    told = {each.turned for each in stacks if not each.is_square}
    turned = told == {True} if len(told) == 1 else _turned_by_itself(square[0], params, version)
    return tuple(Bare(e.parameter, e.spec, e.a, e.b, turned) if e in square else e for e in found)


def _turned_by_itself(square: Bare, params: Mapping[str, TensorSpec], version: str | None) -> bool:
    return _is_stored_in_out(square, params) or _turned_in(version, square)


def _is_stored_in_out(square: Bare, params: Mapping[str, TensorSpec]) -> bool:
    """Say whether a bias (E, out) of its module tells that stacks there are (E, in, out)."""
    parent = square.parameter.rpartition(".")[0]
    stacks = {name: spec.shape for name, spec in params.items() if name.rpartition(".")[0] == parent}
    biased = ((shape, stacks[f"{name}_bias"]) for name, shape in stacks.items() if f"{name}_bias" in stacks)
    return any(len(shape) == 3 and shape[1] != shape[2] and bias[-1:] == shape[2:] for shape, bias in biased)


def _turned_in(version: str | None, square: Bare) -> bool:
    """Say whether a version of PEFT has A over rows; raises PlanError for one that is not known to.

    0.18.2 was never released: its development changed from one to the other.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", version or "")[:3])
    if len(numbers) < 3 or numbers == (0, 18, 2):
        raise PlanError(
            f"{square.parameter} is {list(square.spec.shape)}: its factors do not say which of them is over its rows, "
            f"and peft_version is {version!r}",
            expected="a version of PEFT in adapter_config.json, or factors of a parameter that is not square",
            hint="write the version that it was trained with: from 0.19 on lora_A is over the columns",
            tensor=square.a.name,
            field="peft_version",
        )
    return numbers[:2] < _LATER
