"""Keys of a GGUF model that change what is computed, and that the architectures here have no part for."""

from __future__ import annotations

from collections.abc import Mapping

from weightloom.runtime.gguf.fields import Fields

# By key, the values that leave all as it is; llama.cpp takes a scale, a cap or a bound of 0 for none.
_NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "logit_scale": (0, 1),
    "residual_scale": (0, 1),
    "embedding_scale": (0, 1),
    "attention.scale": (0,),
    "attention.clamp_kqv": (0,),
    "attn_logit_softcapping": (0,),
    "final_logit_softcapping": (0,),
    "use_parallel_residual": (False,),
    "attention.causal": (True,),
}


def refuse_unserved(fields: Fields, architecture: str) -> None:
    """Raise ConfigError, naming the key, for one that has another value than those that change nothing."""
    for name, neutral in _NEUTRAL.items():
        key = f"{architecture}.{name}"
        if key in fields.values and fields.values[key] not in neutral:
            raise fields.bad(key, f"{' or '.join(map(str, neutral))}, or no such key: nothing here computes with it")
