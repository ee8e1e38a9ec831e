"""Towers from timm, which imports torchvision: also where its compiled part does not fit the torch at hand.

Both are in the extra `towers`; without them these models are not built.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

# Classes of the reference implementation that take a tower from there.
NEEDS_TIMM = {"gemma3n", "timm_wrapper"}
_BOXES = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def has_timm() -> bool:
    """Say whether both packages are installed."""
    return bool(find_spec("timm") and find_spec("torchvision"))


def import_torchvision() -> None:
    """Import it, if it is there; without its compiled part the ops that it adds to are declared, and never called."""
    import torch

    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", _BOXES)
        import_module("torchvision")
