"""The layout that weights are in, as their own metadata records it."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_LAYOUT = "hf"
MLX = "mlx"
KEY = "weightloom.layout"
_FORMAT = "format"


def recorded_layout(metadata: Mapping[str, str]) -> str | None:
    """Give the layout that was recorded when the weights were written; None where none was."""
    return metadata.get(KEY)


def metadata_in(layout: str, source: Mapping[str, str]) -> dict[str, str]:
    """Give the metadata of weights in a layout that were made from a source with `source` as its own.

    Readers go by `format`: it is `mlx` for what MLX's own tools write, and never for published names.
    """
    found = {key: text for key, text in source.items() if key not in (KEY, _FORMAT)}
    if layout == DEFAULT_LAYOUT:
        before = source.get(_FORMAT, "pt")
        return {_FORMAT: "pt" if before == MLX else before, **found}
    return {_FORMAT: MLX if layout == MLX else source.get(_FORMAT, "pt"), KEY: layout, **found}
