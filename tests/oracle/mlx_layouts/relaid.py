"""Published files whose tensors lie otherwise than the reference implementation writes them today."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.make import file_bytes
from tests.golden.reference import Tensor
from tests.oracle import peer
from tests.oracle.peer import Held

Relay = Callable[[Path], None]

_BLOCK = 32
_SIDE = 128
_FLOATS = ("embed_tokens", "lm_head", "norm", ".gate.")


def turned_experts(place: Path) -> None:
    """Experts with the matrix axes the other way round, as before version 5."""
    _rewrite(place, {"transformers_version": "4.57.0"}, _turned)


def blocks_of_codes(place: Path) -> None:
    """Experts as codes of 4 bits in blocks along the inner axis, each with a scale."""
    kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    _rewrite(place, {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": kept}}, _blocks)


def further_layer(place: Path) -> None:
    """One more layer behind those that the model has, which guesses further tokens."""
    _rewrite(place, {"num_nextn_predict_layers": 1}, _with_further)


def both_ends(place: Path) -> None:
    """A tied head that is written all the same."""
    _rewrite(place, {}, _with_head)


def codes_in_blocks(place: Path) -> None:
    """Linear layers as codes of 8 bits with a scale for each block of 128 x 128."""
    how = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [_SIDE, _SIDE]}
    _rewrite(place, {"quantization_config": how}, _codes)


def _rewrite(place: Path, fields: Mapping[str, Any], relay: Callable[[str, Tensor, bytes], Held]) -> None:
    for file, held in peer.read_files(place).items():
        found = {new: one for name, (spec, raw) in held.items() for new, one in relay(name, spec, raw).items()}
        specs, data = {n: s for n, (s, _) in found.items()}, {n: raw for n, (_, raw) in found.items()}
        (place / file).write_bytes(file_bytes(specs, data))
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, **fields}, indent=2))


def _with_further(name: str, spec: Tensor, raw: bytes) -> Held:
    further = name.replace("model.layers.1.", "model.layers.2.")
    names = (name, further, further.replace("input_layernorm", "enorm")) if further != name else (name,)
    return dict.fromkeys(names, (spec, raw))


def _with_head(name: str, spec: Tensor, raw: bytes) -> Held:
    names = (name, "lm_head.weight") if name == "model.embed_tokens.weight" else (name,)
    return dict.fromkeys(names, (spec, raw))


def _turned(name: str, spec: Tensor, raw: bytes) -> Held:
    if ".experts." not in name:
        return {name: (spec, raw)}
    bits = np.frombuffer(raw, np.uint32).reshape(spec.shape).swapaxes(1, 2)
    return {name: (Tensor(spec.dtype, bits.shape), bits.tobytes())}


def _blocks(name: str, spec: Tensor, raw: bytes) -> Held:
    if not name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
        return {name: (spec, raw)}
    experts, inner, outer = spec.shape
    random = np.random.default_rng(outer)
    codes = random.integers(0, 255, (experts, outer, inner // _BLOCK, _BLOCK // 2), np.uint8, endpoint=True)
    scales = random.integers(120, 125, codes.shape[:-1], np.uint8)
    parts = {"blocks": codes, "scales": scales}
    return {f"{name}_{part}": (Tensor("U8", each.shape), each.tobytes()) for part, each in parts.items()}


def _codes(name: str, spec: Tensor, raw: bytes) -> Held:
    if len(spec.shape) < 2 or any(part in name for part in _FLOATS):
        return {name: (spec, raw)}
    rows, columns = spec.shape
    random = np.random.default_rng(len(name))
    codes = random.integers(0, 0x7E, spec.shape, np.uint8, endpoint=True) | random.choice([0, 0x80], spec.shape)
    scales = random.uniform(0.001, 0.01, (-(-rows // _SIDE), -(-columns // _SIDE))).astype(np.float32)
    return {
        name: (Tensor("F8_E4M3", spec.shape), codes.astype(np.uint8).tobytes()),
        f"{name}_scale_inv": (Tensor("F32", scales.shape), scales.tobytes()),
    }
