"""The text model inside a checkpoint of several: its config, and the rules from the whole's names to its own.

Published names put it below `language_model` or `model.language_model`, or leave it where a model of text alone has
it, with the towers beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weightloom.engine import Drop, RuleSet, WeightRenaming
from weightloom.engine.errors import ConfigError
from weightloom.runtime.choosing.resolution import OUTERMOST
from weightloom.runtime.configs.sections import SECTIONS

ByClass: TypeAlias = Callable[[str], tuple[str, ...]]

# What the whole says of its text model too.
_CARRIED = ("torch_dtype", "dtype", "quantization", "quantization_config")
_OF_TOWERS = ("vision_config", "audio_config", "architectures", "language_model_only")
_HEADS = ("lm_head.",)
# The first that a name begins with; what it stands for.
_PREFIXES = {
    "language_model.lm_head.": "lm_head.",
    "language_model.model.": "model.",
    "model.language_model.model.": "model.",
    "model.language_model.": "model.",
    "language_model.": "model.",
}
_TOWER = re.compile(r"^(?:model\.)?[^.]*(?:vision|visual|vpm|audio|speech|image|mm_|multi_?modal|resampler)[^.]*")
_MODULE = re.compile(r"^(?:model\.)?[^.]+")


@dataclass(frozen=True)
class TextHalf:
    """The text model of a checkpoint: its config, the modules that are left out, the rules that lead to its names.

    `own` are the fields that its section of the whole's config says.
    """

    config: Mapping[str, Any]
    model_type: str
    field: str
    left_out: tuple[str, ...]
    rules: RuleSet
    own: frozenset[str] = frozenset()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def note(self) -> str:
        """Say what was loaded, and what was not."""
        rest = f"; left out, and saved back as they are: {', '.join(self.left_out)}" if self.left_out else ""
        return f"this is the text model alone, {self.model_type} by {self.field}{rest}"

    @property
    def renames(self) -> RuleSet:
        """The rules from the names of any whole to the text model's: an adapter may have those of another release."""
        renames = (WeightRenaming(f"^{re.escape(each)}", _PREFIXES[each]) for each in _PREFIXES)
        return RuleSet(renames).replace_all(scope=OUTERMOST)

    def place(self, field: str) -> str:
        """Give where a field of its config is in the whole's."""
        section = self.field.rpartition(".")[0]
        return f"{section}.{field}" if re.split(r"[.\[]", field)[0] in self.own else field


def text_half(config: Mapping[str, Any], names: Collection[str], by_class: ByClass = lambda name: ()) -> TextHalf:
    """Find the text model among the (canonical) names of a whole.

    Where its own config says no model type, `by_class` gives those that build its class. Raises ConfigError where
    neither says one.
    """
    section = text_section(config)
    own = config if section is None else config[section]
    model_type, field = _said_type(own, by_class)
    place = field if section is None else f"{section}.{field}"
    if not (isinstance(model_type, str) and model_type.strip()):
        raise ConfigError(
            f"{place} is {model_type!r}", expected="the text model's type", hint="complete config.json", field=place
        )
    left_out = tuple(sorted(set(_outside(names))))
    merged = _merged(config, own)
    mine = frozenset(() if section is None else (name for name in own if merged.get(name) is own[name]))
    return TextHalf(merged, model_type, place, left_out, _rules(names, left_out), mine)


def _said_type(own: Mapping[str, Any], by_class: ByClass) -> tuple[object, str]:
    """Give the model type that a config says, else the only one of its class, and the field that says so."""
    classes = own.get("architectures")
    if own.get("model_type") is None and isinstance(classes, list) and classes and isinstance(classes[0], str):
        found = by_class(classes[0])
        if len(found) == 1:
            return found[0], "architectures[0]"
    return own.get("model_type"), "model_type"


def text_section(config: Mapping[str, Any]) -> str | None:
    """Name the section that is the text model's config; None where there is none, or an empty one.

    Raises ConfigError, naming the field, for one of another type.
    """
    for name in SECTIONS:
        found = config.get(name)
        if found is not None and not isinstance(found, Mapping):
            raise ConfigError(
                f"{name} is {found!r}", expected="an object or null", hint="correct config.json", field=name
            )
        if found:
            return name
    return None


def _merged(config: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Give the text model's config with what the whole says of it; of the tie, the whole's flag decides."""
    carried = {name: config[name] for name in _CARRIED if name in config}
    quantization = {name: _below(value) for name, value in carried.items() if isinstance(value, Mapping)}
    tie = {name: config[name] for name in ("tie_word_embeddings",) if config.get(name) is not None}
    return {**carried, **quantization, **{k: v for k, v in own.items() if k not in _OF_TOWERS}, **tie}


def _below(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give settings with the names of modules as the text model has them."""
    return {_own_name(name): value for name, value in settings.items()}


def _own_name(name: str) -> str:
    prefix = next((each for each in _PREFIXES if f"{name}.".startswith(each)), None)
    return name if prefix is None else _PREFIXES[prefix] + name[len(prefix) :]


def _outside(names: Collection[str]) -> Iterator[str]:
    """Give the module of each name that is not the text model's."""
    below = any(name.startswith(tuple(_PREFIXES)) for name in names)
    for name in names:
        mine = name.startswith((*_PREFIXES, *_HEADS)) if below else _TOWER.match(name) is None
        found = None if mine else _MODULE.match(name)
        if found is not None:
            yield found[0]


def _rules(names: Collection[str], left_out: tuple[str, ...]) -> RuleSet:
    used = {prefix for name in names if (prefix := next((p for p in _PREFIXES if name.startswith(p)), None))}
    renames = [WeightRenaming(f"^{re.escape(each)}", _PREFIXES[each]) for each in _PREFIXES if each in used]
    patterns = [f"^{re.escape(module)}(?:\\.|$)" for module in left_out]
    drops = [Drop(patterns, why="not of the text model, which alone is loaded")] if patterns else []
    return RuleSet((*drops, *renames)).replace_all(scope=OUTERMOST)
