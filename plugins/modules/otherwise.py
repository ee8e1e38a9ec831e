"""What parameters of a module are known to be otherwise in other layouts, though names and shapes are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weightloom.plugins.layers.norms import ZeroCentredLayerNorm, ZeroCentredNorm

if TYPE_CHECKING:
    import mlx.nn as nn

_CENTRED = "it is what is added to the norm's scale, and a layout may store the scale itself (Add with value -1)"


def known_otherwise(module: nn.Module) -> dict[str, str]:
    """Give it in words, by the parameter's name."""
    norms = (path for path, each in module.named_modules() if isinstance(each, ZeroCentredNorm | ZeroCentredLayerNorm))
    return {f"{path}.weight": _CENTRED for path in norms}
