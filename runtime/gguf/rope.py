"""The rotary settings of a GGUF model, in the form of config.json's `rope_scaling`.

llama.cpp writes linear and yarn scaling as keys. The scaling of Llama 3.1 it writes as a tensor instead, the divisor of
each frequency: here the four numbers that give these divisors are found again, and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, log, pi
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.runtime.gguf.fields import Fields

_TRAINED = tuple(1 << power for power in range(11, 18))
_LOW, _HIGH = 1.0, 4.0


def rope_scaling(fields: Fields, architecture: str, theta: float, divisors: Sequence[float]) -> dict[str, Any] | None:
    """Give `rope_scaling`, or None for plain rotary embeddings; `divisors` are those of `rope_freqs`, if it is there.

    Raises ConfigError for a kind of scaling that is not known, and for divisors that no settings give.
    """
    prefix = f"{architecture}.rope.scaling"
    kind = fields.text(f"{prefix}.type", "none")
    stated = _by_kind(fields, prefix, kind)
    if not divisors or all(divisor == 1.0 for divisor in divisors):
        return stated or _old_linear(fields, architecture)
    if stated is not None:
        raise ConfigError(
            f"{prefix}.type is {kind!r} and there are divisors in rope_freqs.weight too",
            expected="one kind of scaling",
            file=fields.file,
            tensor="rope_freqs.weight",
        )
    return _llama3(fields, theta, divisors)


def llama3_divisors(theta: float, count: int, factor: float, trained: int) -> list[float]:
    """Give what each of `count` frequencies is divided by (Llama 3.1's rule with low 1 and high 4).

    Wavelengths up to trained / high stay, those from trained / low on are stretched by `factor`, between them the
    two frequencies are blended in proportion.
    """
    found = []
    for index in range(count):
        turns = trained / (2 * pi * theta ** (index / count))
        share = min(1.0, max(0.0, (turns - _LOW) / (_HIGH - _LOW)))
        found.append(1 / ((1 - share) / factor + share))
    return found


def _by_kind(fields: Fields, prefix: str, kind: str) -> dict[str, Any] | None:
    share = fields.positive(f"{prefix}.attn_factor", 1.0)
    if kind != "yarn" and share != 1.0:
        raise fields.bad(f"{prefix}.attn_factor", "1.0 where the scaling is not yarn")
    if kind == "none":
        return None
    if kind not in ("linear", "yarn"):
        raise fields.bad(f"{prefix}.type", "none, linear or yarn")
    factor = fields.positive(f"{prefix}.factor")
    found: dict[str, Any] = {"rope_type": kind, "type": kind, "factor": factor}
    if kind == "yarn":
        found["original_max_position_embeddings"] = fields.whole(f"{prefix}.original_context_length")
        if share != 1.0:
            found["attention_factor"] = share * (0.1 * log(factor) + 1.0)
    return found


def _old_linear(fields: Fields, architecture: str) -> dict[str, Any] | None:
    """Read the key of the first GGUF files."""
    factor = fields.positive(f"{architecture}.rope.scale_linear", 1.0)
    return None if factor == 1.0 else {"rope_type": "linear", "type": "linear", "factor": factor}


def _llama3(fields: Fields, theta: float, divisors: Sequence[float]) -> dict[str, Any]:
    factor = float(round(max(divisors), 4))
    sound = all(0 < divisor <= 1e6 for divisor in divisors)
    for trained in _TRAINED if sound else ():
        wanted = llama3_divisors(theta, len(divisors), factor, trained)
        if all(isclose(seen, each, rel_tol=1e-4) for seen, each in zip(divisors, wanted, strict=True)):
            return {
                "rope_type": "llama3",
                "type": "llama3",
                "factor": factor,
                "low_freq_factor": _LOW,
                "high_freq_factor": _HIGH,
                "original_max_position_embeddings": trained,
            }
    raise ConfigError(
        f"rope_freqs.weight stretches frequencies up to {factor:g} times, as no known settings do",
        expected="the divisors of Llama 3.1's scaling (low 1, high 4)",
        hint="get the model in its published form (safetensors), whose config has the settings",
        file=fields.file,
        tensor="rope_freqs.weight",
        field="rope_scaling",
    )
