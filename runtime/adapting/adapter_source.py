"""An adapter's directory: its weights, the rules for its names, and its scales."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine import Checkpoint, RuleSet
from weightloom.engine.errors import CheckpointError, ConfigError, PlanError
from weightloom.rules import load_rules
from weightloom.runtime.adapting.adapter_config import NAME as CONFIG_NAME
from weightloom.runtime.adapting.adapter_config import AdapterConfig, read_adapter_config
from weightloom.runtime.adapting.mlx_adapter_config import read_scale
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT, MLX

WEIGHTS = "adapter_model.safetensors"
MLX_WEIGHTS = "adapters.safetensors"
_FACTOR = re.compile(r"^(?:base_model\.model\.)?(?P<module>.*)\.lora_(?P<kind>A|B|embedding_A|embedding_B)(?:\.|$)")


@dataclass(frozen=True)
class AdapterSource:
    """An adapter that is open: `names` lead to the form that `plan_adapter` takes, in the base's `layout`.

    `scale` gives the scale of the factors by A's name in the file; `notes` says what else is to know.
    """

    path: Path
    checkpoint: Checkpoint
    names: RuleSet
    layout: str
    scale: Callable[[str], float]
    notes: tuple[str, ...] = ()


def open_adapter(path: Path) -> AdapterSource:
    """Open a directory that PEFT or mlx-lm wrote; of the weights the headers are read.

    Raises CheckpointError for a directory without an adapter, or with one of each; ConfigError for a config that is
    off or asks for what is not done here, PlanError for ranks that are not the config's.
    """
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
    """Open what mlx-lm wrote."""
    scale = read_scale(path / CONFIG_NAME)
    return AdapterSource(
        path, Checkpoint.open(path / MLX_WEIGHTS), load_rules("mlx_lm_adapter"), MLX, lambda name: scale
    )


def _open_peft(path: Path) -> AdapterSource:
    """Open what PEFT wrote; every rank is held against the config."""
    config = read_adapter_config(path / CONFIG_NAME)
    if config.use_dora:
        raise ConfigError(
            "use_dora is true, and magnitudes are not applied yet",
            expected="an adapter of low rank alone",
            hint="fuse it with PEFT",
            file=path / CONFIG_NAME,
            field="use_dora",
        )
    if config.target_parameters:
        raise ConfigError(
            f"target_parameters is {list(config.target_parameters)}, and factors of bare parameters are not read yet",
            expected="factors of modules",
            hint="fuse it with PEFT",
            file=path / CONFIG_NAME,
            field="target_parameters",
        )
    checkpoint = Checkpoint.open(path / WEIGHTS)
    try:
        modules = _checked_modules(checkpoint, config)
        return AdapterSource(
            path,
            checkpoint,
            load_rules("peft"),
            DEFAULT_LAYOUT,
            lambda name: config.scale(modules[name]),
            (*config.notes, *config.unmatched(tuple(modules.values()))),
        )
    except BaseException:
        checkpoint.close()
        raise


def _checked_modules(checkpoint: Checkpoint, config: AdapterConfig) -> dict[str, str]:
    """Give the module of each factor in the file; raises PlanError naming every one that has another rank."""
    found = {name: match for name in checkpoint.tensors if (match := _FACTOR.match(name))}
    ranks = {name: (_rank(checkpoint, name, each["kind"]), config.rank(each["module"])) for name, each in found.items()}
    wrong = [
        f"{name} has rank {seen}, and {CONFIG_NAME} {wanted}"
        for name, (seen, wanted) in ranks.items()
        if seen != wanted
    ]
    if wrong:
        raise PlanError(
            "\n".join(["the adapter's ranks are not those of its config", *(f"  {line}" for line in wrong)]),
            expected="one rank in both, since the scale follows from it",
            file=checkpoint.files[0],
            tensor=next(name for name, (seen, wanted) in ranks.items() if seen != wanted),
        )
    return {name: each["module"] for name, each in found.items()}


def _rank(checkpoint: Checkpoint, name: str, kind: str) -> int | None:
    """Give the rank of a factor: A is (rank, columns), B (rows, rank)."""
    shape = checkpoint.tensors[name].shape
    return None if len(shape) < 2 else shape[-2] if kind.endswith("A") else shape[-1]


_KINDS: Mapping[str, Callable[[Path], AdapterSource]] = {WEIGHTS: _open_peft, MLX_WEIGHTS: _open_mlx}
