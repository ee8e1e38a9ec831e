"""An adapter as PEFT writes it: adapter_model.safetensors, and the ranks and alphas that its config has to say.

Format: huggingface/peft 0.21, `LoraConfig` and `get_peft_model_state_dict`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import nextafter
from typing import TYPE_CHECKING, Any

from weightloom.runtime.adapting.adapter_source import WEIGHTS
from weightloom.runtime.adapting.published import Factor, Published
from weightloom.runtime.adapting.written import About, Written, no_place

if TYPE_CHECKING:
    import mlx.core as mx

_PREFIX = "base_model.model."
_TASKS = {"generate": "CAUSAL_LM", "embed": "FEATURE_EXTRACTION"}
_WEIGHT = ".weight"
_FORM = "PEFT"
_MATRIX = 2


def as_peft(adapter: Published, about: About) -> Written:
    """Give an adapter as PEFT reads it; raises PlanError for factors of what is no module's matrix."""
    for each in adapter.factors:
        if not each.name.endswith(_WEIGHT) or each.a.ndim != _MATRIX:
            shape = f"a bare parameter of {each.a.ndim} dims"
            raise no_place(each.name, _FORM, shape, "weights of modules, which are matrices")
        if each.lengths is not None and each.by_columns != each.embedding:
            of = "columns" if each.by_columns else "rows"
            raise no_place(each.name, _FORM, f"brought to lengths of {of}", "of columns for embeddings, else of rows")
    arrays = dict(pair for each in adapter.factors for pair in _named(each))
    arrays |= {f"{_PREFIX}{name}": array for name, array in adapter.whole.items()}
    return Written(WEIGHTS, arrays, _config(adapter, about))


def _named(factor: Factor) -> Iterator[tuple[str, mx.array]]:
    place = _PREFIX + factor.module
    if factor.embedding:
        yield f"{place}.lora_embedding_A", factor.b.T
        yield f"{place}.lora_embedding_B", factor.a.T
    else:
        yield f"{place}.lora_A{_WEIGHT}", factor.a
        yield f"{place}.lora_B{_WEIGHT}", factor.b
    if factor.lengths is not None:
        yield f"{place}.lora_magnitude_vector", factor.lengths


def _config(adapter: Published, about: About) -> dict[str, Any]:
    alphas = {each.module: alpha_of(each.scale, each.rank) for each in adapter.factors}
    ranks = {each.module: each.rank for each in adapter.factors}
    rank = _usual(list(ranks.values()), 1)
    alpha = _usual([alphas[module] for module in alphas if ranks[module] == rank], 1)
    return {
        "peft_type": "LORA",
        "task_type": _TASKS.get(about.task or ""),
        "base_model_name_or_path": about.base,
        "r": rank,
        "lora_alpha": alpha,
        "use_rslora": False,
        "use_dora": any(each.lengths is not None for each in adapter.factors),
        "rank_pattern": _others(ranks, rank),
        "alpha_pattern": _others(alphas, alpha),
        "target_modules": sorted(ranks),
        "modules_to_save": sorted({name.rpartition(".")[0] for name in adapter.whole}) or None,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }


def alpha_of(scale: float, rank: int) -> float:
    """Give the alpha for which `alpha / rank` is the scale, or nearest to it; a whole one as int."""
    alpha = scale * rank
    near = (alpha, nextafter(alpha, float("inf")), nextafter(alpha, float("-inf")))
    exact = next((each for each in near if each / rank == scale), alpha)
    return int(exact) if exact == int(exact) else exact


def _usual(values: Sequence[Any], otherwise: Any) -> Any:
    """Give the most frequent value, the first of several."""
    return Counter(values).most_common(1)[0][0] if values else otherwise


def _others(values: Mapping[str, Any], usual: Any) -> dict[str, Any]:
    return {module: value for module, value in values.items() if value != usual}
