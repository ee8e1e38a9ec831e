"""Whether a checkpoint is loaded whole, or its text model alone; and what is read then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from weightloom.engine import Drop, PrefixChange, RuleSet, WeightRenaming, build_plan
from weightloom.engine.errors import PluginError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.repair import Repair
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.judging.evidence import Evidence
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.choosing.text_half import TextHalf, text_half, text_section
from weightloom.runtime.opening.opening import Opened


@dataclass(frozen=True)
class Reading:
    """What a load reads: which architecture, by which config and rules; `half` where it is a text model alone.

    The config's numbers are repaired, as `repairs` says, by field as the whole's config.json has it.
    """

    architecture: Architecture
    config: Mapping[str, Any]
    rules: RuleSet
    half: TextHalf | None = None
    repairs: tuple[Repair, ...] = ()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def repaired_reading(read: Reading) -> Reading:
    """Give the reading with its config repaired, as the architecture reads it."""
    found = read.architecture.repaired(read.config)
    half = read.half
    places = [each if half is None else replace(each, field=half.place(each.field)) for each in found.repairs]
    return replace(read, config=found.content, repairs=tuple(places))


def may_be_half(evidence: Evidence, manager: PluginManager, text_only: bool | None) -> bool:
    """Say whether a text model may be loaded alone: asked for, or the whole is unserved and shows no tower.

    So may one that says `language_model_only` and has no section for its text model: what is beside it is left out.
    """
    if text_only is not None:
        return text_only
    if evidence.config.get("language_model_only") is True and text_section(evidence.config) is None:
        return True
    served = manager.find(str(evidence.config.get("model_type"))) is not None
    return not served and not evidence.vision.present and text_section(evidence.config) is not None


def wanted_half(
    opened: Opened, evidence: Evidence, whole: RuleSet, manager: PluginManager, text_only: bool | None
) -> TextHalf | None:
    """Give the text model to load alone; None where the whole is loaded. `whole` leads to the whole's names.

    Asked for, it is loaded alone where there is more than it; unasked, where it is all that there is, or where the
    config says `language_model_only`.
    """
    config = evidence.config
    names = build_plan(opened.checkpoint, whole, config=config).params.keys()
    half = text_half(config, names, manager.with_class)
    if not half.left_out and half.field == "model_type":
        return None
    if text_only:
        return half
    alone = not half.left_out or config.get("language_model_only") is True
    return half if alone and manager.find(half.model_type) is not None else None


def refuse_unserved(evidence: Evidence, manager: PluginManager) -> None:
    """Raise PluginError, naming its text model, and whether that would load, where nothing serves the whole."""
    config, section = evidence.config, text_section(evidence.config)
    own = config[section].get("model_type") if section else None
    whole = config.get("model_type")
    if not (isinstance(whole, str) and isinstance(own, str)) or manager.find(whole) is not None:
        return
    alone = f"text_only=True loads its text model alone, {own} by {section}.model_type (--text-only); or "
    unserved = f"its text model is {own!r} by {section}.model_type, which nothing serves either; {manager.near(own)} "
    raise PluginError(
        f"no installed plugin serves model type {whole!r} ({evidence.vision})",
        expected=f"one of {', '.join(manager.model_types())}",
        hint=(unserved if manager.find(own) is None else alone) + f"install a package that offers {whole!r}",
        field="model_type",
    )


def whole_rules(choice: Choice | None, layout: str) -> RuleSet:
    """Give the rules that lead to the whole's names, as far as they are known."""
    return RuleSet() if choice is None or layout not in choice.known else choice.rules_in(layout)


def half_rules(half: TextHalf, architecture: Architecture, whole: RuleSet, layout: str) -> RuleSet:
    """Give the rules that lead to the text model's names.

    Of the whole's they are those that rename; what is converted and tied is the text model's own affair.
    """
    named = [rule for rule in whole if isinstance(rule, WeightRenaming | PrefixChange | Drop)]
    own = model_rules(architecture, half.config, layout)
    return RuleSet((*named, *half.rules, *own), architecture.base_model_prefix)
