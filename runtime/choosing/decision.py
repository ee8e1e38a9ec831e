"""What a checkpoint is loaded as: its model type, its task, the architecture, whole or as text alone, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from weightloom.engine import RuleSet
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.plugins.architecture import Task
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.judging.evidence import Evidence, evidence_of
from weightloom.plugins.judging.fact import Fact
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.choosing.layout_seen import find_opened
from weightloom.runtime.choosing.rule_choice import CallerRules, caller_rules, model_rules
from weightloom.runtime.choosing.settled import settled_architecture
from weightloom.runtime.choosing.text_choice import (
    Reading,
    half_rules,
    may_be_half,
    refuse_unserved,
    repaired_reading,
    wanted_half,
    whole_rules,
)
from weightloom.runtime.configs.config import Config
from weightloom.runtime.configs.stated_dtype import check_dtypes
from weightloom.runtime.configs.stated_quantization import check_quantization
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.opening.sentence_steps import read_steps


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller says about the decision; None where nothing was said.

    `architecture` is its name, its source, or both as `source:name`; `task` what it is to do; `text_only` asks for the
    text model of a checkpoint of several (False: for the whole).
    """

    architecture: str | None = None
    task: str | None = None
    text_only: bool | None = None


NOTHING_ASKED = Asked()


@dataclass(frozen=True)
class Decision:
    """What is read, in which layout, by which evidence, and the facts that decided, in order."""

    reading: Reading
    layout: str
    evidence: Evidence
    facts: tuple[Fact, ...]

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def decide(
    opened: Opened,
    asked: Asked,
    manager: PluginManager,
    rules: CallerRules | None = None,
    layout: str | None = None,
) -> Decision:
    """Decide from config, headers and the files beside them; the plugins of the model type judge.

    Raises PluginError for a model type that no plugin serves, or a checkpoint that none of its architectures takes,
    ConfigError for files that cannot be or that disagree, UsageError for a task that there is not.
    """
    _refuse_unknown(asked.task)
    read_as, config = layout or layout_of(opened), opened.need_config()
    check_dtypes(config)
    check_quantization(config)
    evidence, first = gather(opened, asked.task), caller_rules(rules, read_as)
    reading = _half(opened, evidence, asked, manager, first, read_as)
    if reading is not None and reading.half is not None:
        named = Fact(reading.half.note, reading.half.field, str(config.path))
    else:
        refuse_unserved(evidence, manager)
        model_type, named = _model_type(config, manager)
        found = manager.architecture(model_type, settled_architecture(config, asked.architecture), evidence)
        reading = Reading(found, config.values, model_rules(found, config.values, read_as, first))
    towers = Fact(str(evidence.vision), evidence.vision.field, str(config.path))
    unnamed = tuple(_unnamed(reading, config))
    return Decision(repaired_reading(reading), read_as, evidence, (named, *evidence.kind.facts, *unnamed, towers))


def gather(opened: Opened, task: str | None = None) -> Evidence:
    """Gather the evidence of an opened checkpoint that has a config; raises ConfigError as `evidence_of` does."""
    config = opened.need_config()
    steps = read_steps(opened.folder)
    return evidence_of(config.values, opened.checkpoint.tensors.keys(), steps, task, str(config.path))


def _half(
    opened: Opened, evidence: Evidence, asked: Asked, manager: PluginManager, first: RuleSet, layout: str
) -> Reading | None:
    """Read the text model alone, where that is asked for or all that there is."""
    if not may_be_half(evidence, manager, asked.text_only):
        return None
    config = opened.need_config()
    whole = whole_rules(find_choice(config, Wish()), layout)
    half = wanted_half(opened, evidence, first + whole, manager, asked.text_only)
    if half is None:
        return None
    inner = evidence_of(half.config, (), evidence.steps, asked.task, str(config.path))
    chosen = settled_architecture(config, asked.architecture)
    found = manager.architecture(half.model_type, chosen, inner)
    return Reading(found, half.config, first + half_rules(half, found, whole, layout), half)


def layout_of(opened: Opened) -> str:
    """Give the layout that is recorded or seen; of a plugin's own model type there is one."""
    choice = find_opened(opened, Wish(), str(opened.path))
    return DEFAULT_LAYOUT if choice is None else choice.layout


def _model_type(config: Config, manager: PluginManager) -> tuple[str, Fact]:
    """Give the model type as it is said; where none is, that of the architectures that build the class."""
    if config.model_type is not None:
        return config.model_type, Fact(f"model_type {config.model_type!r}", "model_type", str(config.path))
    named = config.class_name
    found = () if named is None else manager.with_class(named)
    if len(found) == 1:
        return found[0], Fact(f"architectures[0] {named!r}, of {found[0]}", "architectures[0]", str(config.path))
    seen = "there is no model_type" + ("" if named is None else f", and architectures[0] is {named!r}")
    raise ConfigError(
        f"{seen}, which {'several have: ' + ', '.join(found) if found else 'no installed architecture builds'}"
        if named
        else seen,
        expected="the name of a model family",
        hint="complete config.json",
        file=config.path,
        field="model_type",
    )


def _unnamed(reading: Reading, config: Config) -> Iterator[Fact]:
    """Say so where the class is none that the architecture names: the model type alone decided."""
    names, seen = reading.architecture.class_names, config.class_name
    if reading.half is None and names and seen is not None and seen not in names:
        said = f"architectures[0] {seen!r} is none of those that {reading.architecture.name} names: {', '.join(names)}"
        yield Fact(said, "architectures[0]", str(config.path))


def _refuse_unknown(task: str | None) -> None:
    if task is not None and task not in get_args(Task):
        raise UsageError(f"the task is {task!r}", expected=f"one of {', '.join(get_args(Task))}", field="task")
