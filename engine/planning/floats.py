"""A layout that has floats, or modules as MLX packs them: no weight may be FP8 codes."""

from __future__ import annotations

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan


def check_floats(plan: Plan) -> None:
    """Raise PlanError where a parameter is FP8 codes; the scales of packed modules may be."""
    for name, spec in sorted(plan.params.items()):
        if (spec.dtype or "").startswith("F8") and not name.endswith("scales"):
            raise PlanError(
                f"{name} is made of codes, {spec}, without scales for blocks",
                expected="floats, or codes with NAME_scale_inv beside them and the size of a block in the config",
                hint="convert floats of these weights",
                tensor=name,
            )
