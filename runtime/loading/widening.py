"""Scales of quantized modules as float32 on the CPU: exact, and many times faster to compute with than float16."""

from __future__ import annotations

from weightloom.engine import Plan
from weightloom.engine.planning.cast import with_dtype

_SCALES = (".scales", ".biases", "_scales", "_biases")


def widened(plan: Plan) -> Plan:
    """Give the plan with scales and biases of quantized modules as F32, where the CPU computes.

    The values are the same, and the inverse narrows them again, so that what was read is what is written.
    """
    import mlx.core as mx

    if mx.default_device() != mx.Device(mx.cpu):
        return plan
    return with_dtype(plan, "F32", keep=lambda name: not name.endswith(_SCALES))
