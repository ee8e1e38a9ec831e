"""PEFT's adapter_config.json, read strictly: which ranks and scales an adapter's factors have.

Format: huggingface/peft, `LoraConfig` (0.21). What would change how the factors act and is not done here is refused by
the field's name; a field that is not known and set to something is a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from math import sqrt
from pathlib import Path
from typing import Any, Literal

from weightloom.engine.errors import ConfigError, RuleError
from weightloom.engine.mapping.endings import is_ending
from weightloom.plugins.configs.checks import LARGEST
from weightloom.plugins.configs.config import read
from weightloom.runtime.configs.config import read_config
from weightloom.runtime.configs.finite import is_finite
from weightloom.runtime.configs.repairs import repair_lines

NAME = "adapter_config.json"
_LORA = "LORA"
# They say how the adapter was made, or which modules have factors, which the file itself says.
_SILENT = frozenset(
    (
        *("task_type", "auto_mapping", "base_model_name_or_path", "revision", "inference_mode"),
        *("target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "lora_dropout"),
        *("megatron_config", "megatron_core", "loftq_config", "eva_config", "corda_config", "lora_ga_config"),
        *("qalora_group_size", "runtime_config"),
    )
)
_REFUSED = {
    "lora_bias": "no biases beside the factors",
    "layer_replication": "the base's layers as they are",
    "trainable_token_indices": "no single rows of the embeddings",
    "alora_invocation_tokens": "an adapter for all tokens",
    "use_qalora": "factors for ungrouped columns",
    "velora_config": "plain factors",
    "use_bdlora": "plain factors",
    "arrow_config": "plain factors, not a router among adapters",
    "kasa_config": "plain factors",
    "monteclora_config": "plain factors",
    "ensure_weight_tying": "false: a change is of the parameter, wherever that is used",
}
# Ways to begin that take the adapter's first form out of the base's weights.
_CHANGES_BASE = ("pissa", "olora", "corda", "lora_ga", "loftq")
_UNCHANGED_BASE = (
    "an adapter for the base as it is: such a one begins as a part of the base's weights and goes with what is left of "
    "them, which its file does not have (save it with PEFT's path_initial_model_for_weight_conversion; one that was "
    "saved beside its own base has init_lora_weights true)"
)


@dataclass(frozen=True)
class AdapterConfig:
    """What decides on ranks and scales. Patterns match a module's whole name, or its ending after a dot.

    `r` and `lora_alpha` hold where no pattern does. `notes` says what was set aside.
    """

    peft_type: str
    r: int
    lora_alpha: float
    use_rslora: bool = False
    rank_pattern: Mapping[str, Any] | None = None
    alpha_pattern: Mapping[str, Any] | None = None
    target_parameters: tuple[str, ...] | None = None
    modules_to_save: tuple[str, ...] | None = None
    use_dora: bool = False
    fan_in_fan_out: bool = False
    bias: Literal["none", "all", "lora_only"] = "none"
    init_lora_weights: bool | str | None = None
    peft_version: str | None = None
    notes: tuple[str, ...] = field(default=())

    def rank(self, module: str) -> int:
        """Give the rank of a module's factors; the module by its published name."""
        return int(_first(self.rank_pattern or {}, module, self.r))

    def scale(self, module: str) -> float:
        """Give what B @ A is multiplied by: alpha / r, or alpha / sqrt(r) of a rank-stabilised adapter.

        It is that of the training, by what the config records of the module, or of the bare parameter of that name.
        Where PEFT 0.21 puts parts together that were trained apart (experts w1 and w3), it doubles r and alpha, and a
        rank-stabilised scale grows by sqrt(2) that way; here each part keeps its own.
        """
        alpha, rank = float(_first(self.alpha_pattern or {}, module, self.lora_alpha)), self.rank(module)
        return alpha / sqrt(rank) if self.use_rslora else alpha / rank

    def unmatched(self, modules: tuple[str, ...]) -> Iterator[str]:
        """Say which patterns match none of the modules that are adapted."""
        for name, patterns in (("rank_pattern", self.rank_pattern), ("alpha_pattern", self.alpha_pattern)):
            for key in patterns or {}:
                if not any(_matches(key, module) for module in modules):
                    yield f"{NAME}: {name} has {key!r}, which is the ending of no module's name here"

    def untargeted(self, changed: tuple[str, ...]) -> Iterator[str]:
        """Say which target parameters are none of those, or of the weights of those modules, that are changed."""
        names = (*changed, *(f"{module}.weight" for module in changed))
        for target in self.target_parameters or ():
            if not any(f".{name}".endswith(f".{target}") for name in names):
                yield f"{NAME}: target_parameters has {target!r}, of which the file has no factors"

    def unsaved(self, tensors: Iterable[str]) -> Iterator[str]:
        """Say which modules were trained in full, by the config, and are in none of the file's names."""
        names = tuple(f"{name}." for name in tensors)
        for module in self.modules_to_save or ():
            if not any(f"{module}." in name for name in names):
                yield f"{NAME}: modules_to_save has {module!r}, of which the file has nothing: the base's stays"


def read_adapter_config(path: Path) -> AdapterConfig:
    """Read adapter_config.json; raises ConfigError naming the field, CheckpointError for what is no JSON object."""
    if not path.exists():
        raise ConfigError(
            "there is no adapter_config.json beside the adapter's weights",
            expected="a file that gives r and lora_alpha: the scale is not to be guessed",
            file=path,
        )
    try:
        config = read_config(path)
        checked = _checked(config.values)
        return replace(checked, notes=(*repair_lines(config), *checked.notes))
    except ConfigError as error:
        raise ConfigError(
            error.seen, expected=error.expected, hint="correct it, or fuse with PEFT", file=path, field=error.field
        ) from error


def _checked(content: Mapping[str, Any]) -> AdapterConfig:
    _refuse_other_kinds(content)
    config = read(AdapterConfig, {name: value for name, value in content.items() if name != "notes"})
    _refuse(content, config)
    _check_numbers(config)
    known = {*_SILENT, *_REFUSED, *(each.name for each in fields(AdapterConfig))}
    unknown = sorted(name for name, value in content.items() if name not in known and value)
    notes = tuple(f"{NAME}: {name} is not known, and does nothing" for name in unknown)
    return AdapterConfig(**{**{each.name: getattr(config, each.name) for each in fields(config)}, "notes": notes})


def _refuse_other_kinds(content: Mapping[str, Any]) -> None:
    """Raise ConfigError for another kind of adapter, which has other fields too."""
    kind = content.get("peft_type", _LORA)
    if kind != _LORA:
        raise _bad("peft_type", kind, _LORA)


def _refuse(content: Mapping[str, Any], config: AdapterConfig) -> None:
    begun = config.init_lora_weights
    if isinstance(begun, str) and begun.startswith(_CHANGES_BASE):
        raise _bad("init_lora_weights", begun, _UNCHANGED_BASE)
    if config.use_dora and config.target_parameters:
        raise _bad("use_dora", True, "false beside target_parameters, of which PEFT has no lengths")
    for name, expected in _REFUSED.items():
        if content.get(name) not in (None, False, [], {}):
            raise _bad(name, content[name], expected)


def _check_numbers(config: AdapterConfig) -> None:
    ranks = {"r": config.r, **{f"rank_pattern.{key}": rank for key, rank in (config.rank_pattern or {}).items()}}
    for name, rank in ranks.items():
        if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= LARGEST:
            raise _bad(name, rank, f"a rank, 1 at least and {LARGEST} at most")
    alphas = {
        "lora_alpha": config.lora_alpha,
        **{f"alpha_pattern.{k}": v for k, v in (config.alpha_pattern or {}).items()},
    }
    for name, alpha in alphas.items():
        if not is_finite(alpha):
            raise _bad(name, alpha, "a finite number")
    for key in (*(config.rank_pattern or {}), *(config.alpha_pattern or {})):
        _matches(key, "")


def _bad(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"{name} is {value!r}", expected=expected, field=name)


def _first(patterns: Mapping[str, Any], module: str, otherwise: float) -> float:
    return next((value for key, value in patterns.items() if _matches(key, module)), otherwise)


def _matches(key: str, module: str) -> bool:
    """Say whether a pattern is a module's name, or its ending after a dot."""
    try:
        return is_ending(key, module)
    except RuleError as error:
        raise ConfigError(error.seen, expected=error.expected, field=key) from error
