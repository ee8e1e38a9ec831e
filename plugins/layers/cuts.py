"""How usual decoders' parameters are cut among ranks: patterns on names, for an architecture's `sharding`."""

from __future__ import annotations

from collections.abc import Mapping

VOCABULARY: Mapping[str, str] = {r"^(model\.embed_tokens|lm_head)\.": "vocab"}
"""Embeddings and head."""

HEADS: Mapping[str, str] = {
    r"self_attn\.[qkv]_proj\.": "column",
    r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
}
"""Attention whose heads know nothing of each other."""


def gated(*names: str) -> dict[str, str]:
    """Say how gated feed-forward layers of these names are cut."""
    which = names[0] if len(names) == 1 else f"({'|'.join(names)})"
    return {
        rf"{which}\.(gate|up)_proj\.": "column",
        rf"{which}\.down_proj\.(weight|scales|biases)$": "row",
    }


_DOWN = {r"mlp\.down_proj\.(weight|scales|biases)$": "row"}
GATED: Mapping[str, str] = gated("mlp")
"""Gated feed-forward layers of the usual name."""

FUSED: Mapping[str, str] = {r"mlp\.gate_up_proj\.": "packed", **_DOWN}
"""Those with gate and up in one matrix."""

PLAIN: Mapping[str, str] = {r"mlp\.up_proj\.": "column", **_DOWN}
"""Those without a gate."""

EXPERTS: Mapping[str, str] = {r"\.experts\.gate_up_proj": "packed", r"\.experts\.down_proj": "row"}
"""Stacked experts, gate and up in one matrix."""

DENSE: Mapping[str, str] = {**VOCABULARY, **HEADS, **GATED}
"""All of a decoder such as Llama."""
