"""An adapter's directory: its weights, and how they are fitted to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine import Checkpoint
from weightloom.engine.errors import CheckpointError
from weightloom.rules import load_rules
from weightloom.runtime.adapting.adapter_config import NAME as CONFIG_NAME
from weightloom.runtime.adapting.adapter_config import read_adapter_config
from weightloom.runtime.adapting.fitted import Fit, Fitted
from weightloom.runtime.adapting.mlx_adapter_config import read_mlx_config
from weightloom.runtime.adapting.peft_source import PeftAdapter
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT, MLX

WEIGHTS = "adapter_model.safetensors"
MLX_WEIGHTS = "adapters.safetensors"


@dataclass(frozen=True)
class AdapterSource:
    """An adapter that is open, made for the base's `layout`.

    `fit` gives, for a model's parameters, the rules for its names and the scales of its factors.
    """

    path: Path
    checkpoint: Checkpoint
    layout: str
    fit: Fit


def open_adapter(path: Path) -> AdapterSource:
    """Open a directory that PEFT or mlx-lm wrote; of the weights the headers are read.

    Raises CheckpointError for what is no directory, or one without an adapter or with one of each; ConfigError
    for a config that is off or asks for what is not done here.
    """
    if not path.is_dir():
        raise CheckpointError("there is no such directory", expected="the directory of an adapter", file=path)
    kinds = [open_kind for name, open_kind in _KINDS.items() if (path / name).is_file()]
    if len(kinds) != 1:
        raise CheckpointError(
            f"there is {'both ' if kinds else 'neither '}{(' and ' if kinds else ' nor ').join(_KINDS)}",
            expected=f"a directory with one of them and {CONFIG_NAME}",
            hint="safetensors files are read; convert adapter_model.bin with PEFT" if not kinds else None,
            file=path,
        )
    return kinds[0](path)


def _open_mlx(path: Path) -> AdapterSource:
    """Open what mlx-lm wrote: one scale for all."""
    config = read_mlx_config(path / CONFIG_NAME)
    checkpoint = Checkpoint.open(path / MLX_WEIGHTS)
    fitted = Fitted(load_rules("mlx_lm_adapter"), dict.fromkeys(checkpoint.tensors, config.scale), config.decomposed)
    return AdapterSource(path, checkpoint, MLX, lambda params, base: fitted)


def _open_peft(path: Path) -> AdapterSource:
    """Open what PEFT wrote."""
    config = read_adapter_config(path / CONFIG_NAME)
    checkpoint = Checkpoint.open(path / WEIGHTS)
    return AdapterSource(path, checkpoint, DEFAULT_LAYOUT, PeftAdapter(config, checkpoint).fit)


_KINDS: Mapping[str, Callable[[Path], AdapterSource]] = {WEIGHTS: _open_peft, MLX_WEIGHTS: _open_mlx}
