"""Published names where the reference implementation, saving a model, writes others than it reads.

It runs each rename backwards on every name, also on names that the rename never made, and some renames not at
all. What is here are the names of the files that its rules were written for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.golden.make import file_bytes
from tests.oracle import peer
from tests.oracle.all_keys.relaid import relaid

Replacement = str | Callable[[re.Match[str]], str]


def _one_of_two(found: re.Match[str]) -> str:
    """A layer's attention and its feed-forward block are layers of their own, in turn."""
    first = 2 * int(found[1])
    return f"layers.{first + _TURNS[found[2]][0]}.{_TURNS[found[2]][1]}"


_TURNS = {
    "lambda_1": (0, "attn_alpha"),
    "lambda_2": (1, "mlp_alpha"),
    "mlp": (1, "mixer"),
    "self_attn": (0, "mixer"),
}

# key -> (what it writes, what is published)
_WRITTEN: Mapping[str, tuple[tuple[str, Replacement], ...]] = {
    "altclip": ((r"^(vision_model\.encoder)\.layer\.", r"\1.layers."),),
    "cosmos3_edge": (
        (r"^(model\.visual\..*)\.to_([qkv])\.", r"\1.\2_proj."),
        (r"^(model\.visual\..*)\.up_proj\.", r"\1.fc1."),
        (r"^(model\.visual\..*)\.down_proj\.", r"\1.fc2."),
    ),
    "deepseek_v4": ((r"^model\.", ""), (r"^embed_tokens\.", "embed."), (r"^hc_head\.hc_", "hc_head_")),
    "dory": ((r"layers\.(\d+)\.(self_attn|mlp|lambda_1|lambda_2)", _one_of_two),),
    # What it writes for the first is a star, as its pattern has it; the others are legacy names.
    "esm": ((r"\.layer\.\*\.", ".layer.0."), (r"\.gamma$", ".weight"), (r"\.beta$", ".bias")),
    "hy_v4": ((r"\.(mlp|shared_experts)\.linear_gate", r".\1.gate_proj"),),
    "hy_v4_vl": ((r"\.(mlp|shared_experts)\.linear_gate", r".\1.gate_proj"),),
    "hy_v4_vl_text": ((r"\.(mlp|shared_experts)\.linear_gate", r".\1.gate_proj"),),
    "kimi_k25": (
        (r"^(language_model\.model)\.blocks\.", r"\1.layers."),
        (r"^vision_tower\.encoder\.patch_embed\.", "vision_tower.patch_embed."),
        (r"^model\.mm_projector\.", "mm_projector."),
    ),
    "kimi_linear": ((r"\.block_sparse_moe\.(gate|up|down)_proj", r".mlp.\1_proj"),),
    "qianfan_ocr": ((r"^(language_model\.model)\.encoder\.", r"\1."),),
    "ViTMAEForPreTraining": ((r"^decoder\.decoder_encoder\.layer\.", "decoder.decoder_layers."),),
}


def publish(key: str, directory: Path) -> None:
    """Give the tensors of a directory that the reference implementation wrote the form that is published."""
    config = peer.config_of(directory)
    rewrite(directory, lambda held: relaid(key, {published_name(key, name): one for name, one in held.items()}, config))


def rewrite(directory: Path, change: Callable[[peer.Held], peer.Held]) -> None:
    """Change the tensors of each file; a file that stays as it is is not written."""
    for file, held in peer.read_files(directory).items():
        changed = change(held)
        if changed != held:
            specs = {name: tensor for name, (tensor, _) in changed.items()}
            data = {name: raw for name, (_, raw) in changed.items()}
            (directory / file).write_bytes(file_bytes(specs, data))


def published_name(key: str, written: str) -> str:
    """Give the published name of a tensor that the reference implementation wrote."""
    name = written
    for pattern, replacement in _WRITTEN.get(key, ()):
        name = re.sub(pattern, replacement, name)
    return name
