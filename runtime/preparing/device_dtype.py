"""Which devices have no arithmetic for bfloat16, and compute faster with float16."""

from __future__ import annotations

import re
from collections.abc import Mapping

Device = Mapping[str, str | int]

# M1 and M2; later ones have it.
_APPLE_WITH = 15
_APPLE = re.compile(r"applegpu_g(\d+)")
# Ampere.
_CUDA_WITH = 8


def this_device() -> Device:
    """Describe the device that MLX computes on."""
    import mlx.core as mx

    return mx.device_info(mx.default_device())


def lacks_bf16(device: Device) -> bool:
    """Say whether a device, as `mx.device_info` describes it, has float16 and no bfloat16 in hardware.

    A CPU has neither, and is none of them.
    """
    found = _APPLE.match(str(device.get("architecture", "")))
    major = device.get("compute_capability_major")
    if found is not None:
        return int(found[1]) < _APPLE_WITH
    return isinstance(major, int) and major < _CUDA_WITH


def device_name(device: Device) -> str:
    """Give what a device is called."""
    return str(device.get("device_name") or device.get("architecture") or "this device")
