"""Published tensors where the reference implementation, saving a model, writes others: cut or stacked otherwise.

It cuts a joined tensor into equal parts, whatever the parts were; and it lets the rules of a sub-model act where
the whole model's own rules say how the sub-model's tensors are published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.golden.reference import Tensor
from tests.oracle.peer import Held

Bits = np.ndarray[Any, np.dtype[Any]]
Relay = Callable[[Held, Mapping[str, Any]], Held]

_WIDTH = {"F32": 4, "BF16": 2}


def relaid(key: str, held: Held, config: Mapping[str, Any]) -> Held:
    """Give the tensors of a file as they are published, in the order of their names."""
    return dict(sorted(_RELAYS[key](held, config).items())) if key in _RELAYS else held


def _convolutions(held: Held, config: Mapping[str, Any]) -> Held:
    """Three convolutions, of which the one over values has more channels."""
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    found = dict(held)
    for name in held:
        if name.endswith(".q_conv1d.weight"):
            names = [name.replace(".q_conv1d.", f".{each}_conv1d.") for each in "qkv"]
            joined = np.concatenate([_bits(held[each]) for each in names])
            parts = np.split(joined, [keys, 2 * keys])
            found |= {each: _held(held[name], part) for each, part in zip(names, parts, strict=True)}
    return found


def _experts(held: Held, config: Mapping[str, Any]) -> Held:
    """Experts in one tensor, with the matrix axes the other way round."""
    found: Held = {}
    stacks: dict[str, list[str]] = {}
    for name, tensor in held.items():
        inside = re.fullmatch(r"(llm\..*\.experts)\.(\d+)\.(up|down)_proj\.weight", name)
        if inside is None:
            found[name] = tensor
        else:
            stacks.setdefault(f"{inside[1]}.{_STACKED[inside[3]]}", []).append(name)
    return found | {stacked: _stacked(held, names) for stacked, names in stacks.items()}


_STACKED = {"down": "down_projs", "up": "gate_and_up_projs"}


def _stacked(held: Held, names: Sequence[str]) -> tuple[Tensor, bytes]:
    ordered = sorted(names, key=lambda name: int(name.split(".")[-3]))
    return _held(held[names[0]], np.stack([_bits(held[name]).T for name in ordered]))


def _stacks_of_experts(held: Held, config: Mapping[str, Any]) -> Held:
    """Experts in one tensor, gate rows then up rows of each."""
    found = {name: one for name, one in held.items() if ".mlp.experts." not in name}
    for stem in sorted({name[: name.index(".experts.")] for name in held.keys() - found.keys()}):
        parts = {part: _in_order(held, rf"{re.escape(stem)}\.experts\.(\d+)\.{part}_proj\.weight") for part in _PARTS}
        like = next(held[name] for name in held if name.startswith(f"{stem}.experts."))
        found[f"{stem}.experts.gate_up_proj"] = _held(like, np.concatenate([parts["gate"], parts["up"]], axis=1))
        found[f"{stem}.experts.down_proj"] = _held(like, parts["down"])
    return found


_PARTS = ("gate", "up", "down")


def _in_order(held: Held, pattern: str) -> Bits:
    numbered = {int(match[1]): name for name in held if (match := re.fullmatch(pattern, name))}
    return np.stack([_bits(held[numbered[number]]) for number in sorted(numbered)])


def _bits(one: tuple[Tensor, bytes]) -> Bits:
    tensor, raw = one
    return np.frombuffer(raw, f"<u{_WIDTH[tensor.dtype]}").reshape(tensor.shape)


def _held(like: tuple[Tensor, bytes], bits: Bits) -> tuple[Tensor, bytes]:
    return Tensor(like[0].dtype, bits.shape), bits.tobytes()


_RELAYS: Mapping[str, Relay] = {
    "nemo_speechlm": _experts,
    "olmo_hybrid": _convolutions,
    "qwen3_5_moe": _stacks_of_experts,
}
