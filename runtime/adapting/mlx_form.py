"""An adapter as mlx-lm writes it: adapters.safetensors, with one rank and one scale for all.

Format: ml-explore/mlx-lm 0.32, `tuner/utils.py` and `tuner/lora.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.runtime.adapting.adapter_source import MLX_WEIGHTS
from weightloom.runtime.adapting.published import Factor, Published
from weightloom.runtime.adapting.written import About, Written, no_place

if TYPE_CHECKING:
    import mlx.core as mx

_FORM = "mlx-lm"
_MATRIX = 2


def as_mlx(adapter: Published, about: About) -> Written:
    """Give an adapter as mlx-lm reads it; raises PlanError for whole tensors.

    Factors of lower rank get zeros, and B of another scale is multiplied, which notes say.
    """
    for name in sorted(adapter.whole):
        raise no_place(name, _FORM, "a whole tensor", "changes of low rank")
    if not adapter.factors:
        raise PlanError("the adapter changes nothing", expected="one change at least")
    for each in adapter.factors:
        if each.lengths is not None and (each.by_columns or each.a.ndim > _MATRIX):
            of = "columns" if each.by_columns else "rows of a stack"
            raise no_place(each.name, _FORM, f"brought to lengths of {of}", "lengths of a matrix's rows")
    rank = max(each.rank for each in adapter.factors)
    scales = [each.scale for each in adapter.factors if each.scale] or [0.0]
    scale = Counter(scales).most_common(1)[0][0]
    arrays = dict(pair for each in adapter.factors for pair in _named(_with(each, rank, scale)))
    parameters = {"rank": rank, "scale": scale, "dropout": 0.0, "keys": [each.module for each in adapter.factors]}
    config = {
        "fine_tune_type": "dora" if any(each.lengths is not None for each in adapter.factors) else "lora",
        "model": about.base,
        "num_layers": about.layers,
        "lora_parameters": parameters,
    }
    return Written(MLX_WEIGHTS, arrays, config, tuple(_notes(adapter, rank, scale)))


def _named(factor: Factor) -> Iterator[tuple[str, mx.array]]:
    a, b = factor.a, factor.b
    if factor.embedding:
        first, second = b, a
    elif a.ndim > _MATRIX:
        first, second = a, b
    else:
        first, second = a.T, b.T
    yield f"{factor.module}.lora_a", first
    yield f"{factor.module}.lora_b", second
    if factor.lengths is not None:
        yield f"{factor.module}.m", factor.lengths


def _with(factor: Factor, rank: int, scale: float) -> Factor:
    """Give the same change with a rank that is not lower, and a scale."""
    import mlx.core as mx

    lacking = rank - factor.rank
    rows, columns = ([(0, 0)] * factor.a.ndim for _ in range(2))
    rows[-2], columns[-1] = (0, lacking), (0, lacking)
    b = factor.b
    if factor.scale != scale:
        b = (b.astype(mx.float32) * (factor.scale / scale)).astype(b.dtype)
    if lacking:
        return replace(factor, a=mx.pad(factor.a, rows), b=mx.pad(b, columns), scale=scale)
    return replace(factor, b=b, scale=scale)


def _notes(adapter: Published, rank: int, scale: float) -> Iterator[str]:
    wider = [each.module for each in adapter.factors if each.rank != rank]
    if wider:
        yield f"{len(wider)} changes, such as {wider[0]}, got zeros up to rank {rank}: {_FORM} has one rank for all"
    scaled = [each.module for each in adapter.factors if each.scale != scale]
    if scaled:
        yield f"B of {len(scaled)} changes, such as {scaled[0]}, was multiplied: {_FORM} has one scale, {scale:g}"
