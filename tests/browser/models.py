"""The headers of DeepSeek-V3 as published, before a file that is all hole: nothing of its 689 GB is on the disk."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.guards import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from support.published import Published, deepseek_v3

SIZES: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def write_deepseek(folder: Path) -> Path:
    """Write the checkpoint's header and config into a folder."""
    model = deepseek_v3()
    folder.mkdir()
    _write_hollow(folder / "model.safetensors", model)
    (folder / "config.json").write_text(json.dumps({**SIZES, **model.config}))
    return folder


def _write_hollow(file: Path, model: Published) -> None:
    header, end = dict[str, Any](), 0
    for name, spec in model.specs.items():
        start, end = end, end + spec.nbytes
        header[name] = {"dtype": spec.dtype, "shape": list(spec.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.truncate(8 + len(text) + end)
