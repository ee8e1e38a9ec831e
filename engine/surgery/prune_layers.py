"""The operation that leaves out whole layers; those behind them move up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from weightloom.engine.surgery.config_level import count, level, with_level
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Edit, Operation

_FIELD = "num_hidden_layers"
_NUMBERED = re.compile(r"(.*?\.)(\d{1,9})(\..*)")
# What these say depends on the numbers of layers, and would say another thing of what is left. Those of the first kind
# say what a list of layers' types says too, and count only where there is none.
_TYPES_BY_NUMBER = (
    "full_attention_interval",
    "sliding_window_pattern",
    "attn_layer_period",
    "global_attn_every_n_layers",
    "block_types",
    "_block_types",
    "full_attn_idxs",
    "full_attention_idx",
)
_BY_NUMBER = (
    "first_k_dense_replace",
    "decoder_sparse_step",
    "mlp_only_layers",
    "expert_layer_period",
    "no_rope_layer_interval",
    "num_kv_shared_layers",
    "interleave_moe_layer_step",
    "moe_layers",
    "moe_layer_interval",
    "moe_layer_start_index",
    "num_dense_layers",
    "hybrid_override_pattern",
    "linear_attn_config",
    "per_layer_config",
)
_HARMLESS: tuple[object, ...] = (None, 0, 1, [], {})
_EACH_LAYER = (
    "layer",
    "no_rope_layers",
    "mlp_layer_types",
    "attn_type_list",
    "activation_sparsity_pattern",
    "block_configs",
    "intermediate_size",
)


@dataclass(frozen=True)
class PruneLayers(Operation):
    """Leave out the layers with these `ids` of the one stack that the pattern matches."""

    op: ClassVar[str] = "prune"

    ids: tuple[int, ...] = field(default=())

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give no step: whole tensors go."""
        return ()

    def renamed(self, names: Names) -> Mapping[str, str | None]:
        """Give new names, None for what goes. Raises PlanError where the pattern takes a part of a stack alone."""
        self._check_config(names.config)
        total = count(level(names.config, _FIELD), _FIELD)
        if max(self.ids) >= total or len(set(self.ids)) >= total:
            raise self.refusal([str(max(self.ids))], f"of {total} layers", f"some of 0 to {total - 1}, not all")
        places = {name: found for name in names.specs if (found := _NUMBERED.fullmatch(name))}
        stems = {places[name][1] for name in self.matched(names) if name in places}
        if len(stems) != 1:
            raise self.refusal(stems or {self.pattern.text}, "are not one stack of layers", "a pattern for one stack")
        stem = stems.pop()
        stack = {name: found for name, found in places.items() if found[1] == stem}
        self._check_stack(stack, total)
        return {name: self._moved(found) for name, found in stack.items() if self._moved(found) != name}

    def changed(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the config with fewer layers; lists with an entry a layer lose theirs."""
        part = level(config, _FIELD)
        total = count(part, _FIELD)
        gone = set(self.ids)
        lists = {
            key: [each for number, each in enumerate(value) if number not in gone]
            for key, value in part.items()
            if isinstance(value, list) and len(value) == total and key.startswith(_EACH_LAYER)
        }
        return with_level(config, _FIELD, {_FIELD: total - len(gone), **lists})

    def _moved(self, found: re.Match[str]) -> str | None:
        number = int(found[2])
        if number in self.ids:
            return None
        return f"{found[1]}{number - sum(gone < number for gone in set(self.ids))}{found[3]}"

    def _check_stack(self, stack: Mapping[str, re.Match[str]], total: int) -> None:
        partly = [name for name in stack if not self.pattern.matches(name)]
        if partly:
            raise self.refusal(partly, "are of these layers and not matched", "a pattern for all of the stack")
        numbers = {int(found[2]) for found in stack.values()}
        if numbers != set(range(total)):
            raise self.refusal(stack, f"are of {len(numbers)} layers", f"{total} layers, as {_FIELD} says")

    def _check_config(self, config: Mapping[str, Any]) -> None:
        part = level(config, _FIELD)
        fields = _BY_NUMBER if part.get("layer_types") else (*_TYPES_BY_NUMBER, *_BY_NUMBER)
        told = [key for key in fields if part.get(key) not in _HARMLESS and not _listed_anyway(key, part)]
        told += [key for key in ("quantization", "quantization_config") if _by_module(config.get(key))]
        if part.get("use_sliding_window") and not part.get("layer_types"):
            told.append("max_window_layers")
        if told:
            raise self.refusal(told, "of the config speak of layers by number", "a config without them")


def _listed_anyway(key: str, part: Mapping[str, Any]) -> bool:
    return key == "no_rope_layer_interval" and bool(part.get("no_rope_layers"))


def _by_module(quantization: object) -> bool:
    return isinstance(quantization, Mapping) and any(re.search(r"\.\d+\.", str(key)) for key in quantization)
