"""Names in a file of PEFT that mean one thing or another by what is beside them: rules to go before the usual ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from weightloom.engine import Checkpoint, RuleSet, TensorSpec, WeightRenaming
from weightloom.engine.errors import PlanError
from weightloom.runtime.adapting.peft_factors import Factor

_MAGNITUDE = re.compile(r"^(?:base_model\.model\.)?(?P<module>.*)\.lora_magnitude_vector(?:\.[\w-]+)*$")
_UNWANTED = WeightRenaming(
    r"^base_model\.model\.*.lora_magnitude_vector", "^lora_other.*.lora_magnitude_vector", always=False
)


def magnitude_rules(checkpoint: Checkpoint, by_columns: Sequence[Factor]) -> RuleSet:
    """Rename the magnitudes of modules that have these factors to lengths of columns.

    PEFT has one a column for embeddings, and for weights that are stored (in, out).
    """
    modules = {factor.module for factor in by_columns}
    found = ((name, match["module"]) for name in checkpoint.tensors if (match := _MAGNITUDE.match(name)))
    return RuleSet(
        _literal(name, f"^lora_column_magnitude.{module}.weight") for name, module in found if module in modules
    )


def without_magnitudes() -> RuleSet:
    """Let magnitudes lead nowhere, where the config says that there are none."""
    return RuleSet([_UNWANTED])


def turned(factors: Sequence[Factor], params: Mapping[str, TensorSpec], base: str) -> tuple[Factor, ...]:
    """Give the factors of weights that are stored (in, out), for a config whose `fan_in_fan_out` is true.

    PEFT sets the field by the kind of layer, a Conv1D's or a linear one's; of the kinds it is the last one's. So shapes
    decide; a square weight is as the others are, and where all are square, as the field says. Raises PlanError where
    all others are (out, in).
    """
    plain = [factor for factor in factors if not factor.embeds]
    specs = {factor.name: spec for factor in plain if (spec := _spec(factor, params, base)) is not None}
    over = {factor.name: _over_inputs(factor, specs[factor.name]) for factor in plain if factor.name in specs}
    square = [factor for factor in plain if over.get(factor.name, 0) is None]
    if square and False in over.values() and True not in over.values():
        raise PlanError(
            f"fan_in_fan_out is true, and the weight that {square[0].name} changes is square, while all others are "
            "stored (out, in)",
            expected="fan_in_fan_out false, for linear layers, or a weight that is stored (in, out)",
            tensor=square[0].name,
            field="fan_in_fan_out",
        )
    return tuple(factor for factor in plain if over.get(factor.name, False) in (True, None))


def turned_notes(found: Sequence[Factor]) -> tuple[str, ...]:
    """Name the modules whose weights are taken as stored (in, out): of square ones nothing but the config says so."""
    modules = ", ".join(sorted({factor.module for factor in found}))
    return (f"fan_in_fan_out: taken as stored (in, out), as no linear layer's weight is: {modules}",) if found else ()


def turned_rules(found: Sequence[Factor]) -> RuleSet:
    """Rename factors of weights that are stored (in, out): W + (B @ A).T is W + A.T @ B.T."""
    return RuleSet(
        _literal(factor.name, f"^lora_{'B' if factor.kind == 'A' else 'A'}.{factor.module}.transposed_weight")
        for factor in found
    )


def _spec(factor: Factor, params: Mapping[str, TensorSpec], base: str) -> TensorSpec | None:
    near = (factor.module, f"{base}.{factor.module}", factor.module.removeprefix(f"{base}."))
    found = next((params[f"{name}.weight"] for name in near if f"{name}.weight" in params), None)
    return found if found is not None and len(found.shape) == len(factor.shape) == 2 else None


def _over_inputs(factor: Factor, spec: TensorSpec) -> bool | None:
    """Say whether a weight is stored (in, out) by its factor's shape; None where it is square."""
    rows, columns = spec.shape
    if rows == columns:
        return None
    return factor.shape[1] == rows if factor.kind == "A" else factor.shape[0] == columns


def _literal(name: str, target: str) -> WeightRenaming:
    return WeightRenaming(rf"^{re.escape(name)}(?![\w.])", target, always=False)
