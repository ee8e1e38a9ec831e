"""What a checkpoint is for, by what is beside its model type: the class, the steps after it, flags, a head's tensors.

It is evidence for the architectures of the model type to judge, and names none of them. Class names end as those of
Transformers do, after the head that they have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from weightloom.engine.errors import ConfigError
from weightloom.plugins.judging.fact import Fact
from weightloom.plugins.judging.steps import Steps

Force = Literal["asked", "said", "likely"]
_Claim: TypeAlias = "tuple[str, Fact]"

_HEADS = {
    "ForSequenceClassification": "rerank",
    "ForTokenClassification": "token classification",
    "ForQuestionAnswering": "question answering",
    "ForMultipleChoice": "multiple choice",
    "ForNextSentencePrediction": "next sentence prediction",
}
_DRAFTING = "drafting for another model"
# Classes, and a section of the config, of models that guess ahead for a larger one and are of no use without it.
_DRAFTERS = re.compile(r"Draft|DFlash|DSpark|AssistantModel$|ForCausalLMEagle\d*$|^Eagle\d*[A-Z].*ForCausalLM$")
_DRAFT_SECTION = "dflash_config"
_TEXT_HEADS = ("ForCausalLM", "LMHeadModel")
_SECTIONS = ("", "text_config")
# A classifier's own tensors, as encoders and decoders have them.
_HEAD_NAMES = ("classifier.", "score.")
# `vision` (only among the tokens of a picture) is the other text that a config may have here.
BOTH_WAYS_FLAGS: Mapping[str, tuple[object, ...]] = {
    "use_bidirectional_attention": (True, "all"),
    "is_causal": (False,),
}
"""Fields of a config by which tokens see those after them too, with the values that say so."""
_BOTH_WAYS_NAME = "Bidirectional"


@dataclass(frozen=True, slots=True)
class Kind:
    """A task (None where nothing says more than the model type does), and the facts that say so.

    `force`: it was asked for, or the files say it, or it is what such a class is likely for.
    """

    task: str | None = None
    facts: tuple[Fact, ...] = ()
    force: Force = "likely"

    def __str__(self) -> str:
        return ", ".join(map(str, self.facts))


UNKNOWN = Kind()


def asked_kind(task: str) -> Kind:
    """Give the kind of what somebody asked for by name."""
    return Kind(task, (Fact(f"{task} was asked for", "task"),), "asked")


def kind_of(
    config: Mapping[str, Any],
    names: Iterable[str],
    class_name: str | None,
    steps: Steps | None = None,
    asked: str | None = None,
    file: str | None = None,
) -> Kind:
    """Decide from config.json's content (`file` is its place), the tensors' names, its class, and the steps after it.

    What was asked for goes first. Then a class that names its head or its use, a section of a drafter, and a pooling
    step; where they disagree that is a ConfigError. Then flags of attention both ways; then, where no class is named, a
    classifier's tensors.
    """
    if asked is not None:
        return asked_kind(asked)
    flags = tuple(_by_flags(config, file))
    claims = (*_by_class(class_name, file), *_by_section(config, file), *_by_steps(steps))
    claims = claims or flags or (() if class_name else tuple(_by_head(names)))
    if len({task for task, _ in claims}) > 1:
        raise _contradiction(claims)
    if claims:
        return Kind(claims[0][0], (*(fact for _, fact in claims), *_labels(claims[0][0], config, file)), "said")
    if class_name is not None and class_name.endswith(_TEXT_HEADS):
        return Kind("generate", (_of_class(class_name, file),))
    return UNKNOWN


def sees_both_ways(config: Mapping[str, Any]) -> bool:
    """Say whether tokens see those after them too, by a config's flags or its class; raises ConfigError for no flag."""
    listed = config.get("architectures")
    named = isinstance(listed, list) and any(isinstance(name, str) and _BOTH_WAYS_NAME in name for name in listed)
    return named or any(True for _ in _by_flags(config, None))


def _by_class(class_name: str | None, file: str | None) -> Iterator[_Claim]:
    if class_name is None:
        return
    task = next((task for head, task in _HEADS.items() if class_name.endswith(head)), None)
    if task is not None:
        yield task, _of_class(class_name, file)
    elif _DRAFTERS.search(class_name):
        yield _DRAFTING, _of_class(class_name, file)
    elif _BOTH_WAYS_NAME in class_name:
        yield "embed", _of_class(class_name, file)


def _by_section(config: Mapping[str, Any], file: str | None) -> Iterator[_Claim]:
    if config.get(_DRAFT_SECTION):
        yield _DRAFTING, Fact(f"there is a {_DRAFT_SECTION}", _DRAFT_SECTION, file)


def _of_class(class_name: str, file: str | None) -> Fact:
    return Fact(f"architectures[0] is {class_name!r}", "architectures[0]", file)


def _by_steps(steps: Steps | None) -> Iterator[_Claim]:
    if steps is not None and steps.have("Pooling"):
        yield "embed", Fact("there is a Pooling step", "type", steps.file)


def _by_flags(config: Mapping[str, Any], file: str | None) -> Iterator[_Claim]:
    for section in _SECTIONS:
        content = config.get(section) if section else config
        if not isinstance(content, Mapping):
            continue
        for name, wanted in BOTH_WAYS_FLAGS.items():
            field = f"{section}.{name}" if section else name
            value = content.get(name)
            if not (value is None or isinstance(value, bool) or (isinstance(value, str) and name != "is_causal")):
                raise ConfigError(f"{field} is {value!r}", expected="true or false", file=file, field=field)
            if any(value is each or (isinstance(value, str) and value == each) for each in wanted):
                yield "embed", Fact(f"{field} is {_json(value)}", field, file)


def _json(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _by_head(names: Iterable[str]) -> Iterator[_Claim]:
    found = min((name for name in names if name.startswith(_HEAD_NAMES)), default=None)
    if found is not None:
        yield "rerank", Fact(f"no class is named, and there are tensors of a classifier such as {found}")


def _labels(task: str, config: Mapping[str, Any], file: str | None) -> Iterator[Fact]:
    labels = config.get("id2label")
    if task == "rerank" and isinstance(labels, Mapping):
        yield Fact(f"id2label has {len(labels)} label{'' if len(labels) == 1 else 's'}", "id2label", file)


def _contradiction(claims: Iterable[_Claim]) -> ConfigError:
    said = "; ".join(f"{fact}, which says {task}" for task, fact in claims)
    last = [fact for _, fact in claims][-1]
    return ConfigError(
        f"the files disagree on what this model is for: {said}",
        expected="files of one model",
        hint="say which: task= in Python, --task on the command line",
        file=last.file,
        field=last.field,
    )
