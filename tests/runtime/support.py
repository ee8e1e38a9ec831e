"""Run the command line in this process, and the tiny checkpoints that it is run on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases.fixtures import Arrays, t0, write
from weightloom.runtime.cli import main

T0_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 16,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Cli:
    """Call it with the arguments of a command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *self._capsys.readouterr())


def checkpoint(folder: Path, arrays: Arrays | None = None, config: Mapping[str, Any] | None = None) -> Path:
    """Write a checkpoint of one file with its config; T0 by default."""
    write(folder / "model.safetensors", t0() if arrays is None else arrays)
    (folder / "config.json").write_text(json.dumps(T0_CONFIG if config is None else dict(config)))
    return folder
