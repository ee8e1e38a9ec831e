"""What a checkpoint is for: each kind of fact, which goes first, and facts that disagree."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import ConfigError
from weightloom.plugins.judging.evidence import evidence_of
from weightloom.plugins.judging.kind import Kind
from weightloom.plugins.judging.steps import Step, Steps

POOLED = Steps((Step("Transformer", ""), Step("Pooling", "1_Pooling")), "modules.json")
DRAFTERS = ("DFlashDraftModel", "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "MuseGlimmerAssistantModel")
SCORED = Steps((Step("Transformer", ""), Step("LogitScore", "1_LogitScore")), "modules.json")


def kind(
    config: dict[str, Any], names: tuple[str, ...] = (), steps: Steps | None = None, asked: str | None = None
) -> Kind:
    return evidence_of(config, names, steps, asked, "config.json").kind


def of(class_name: str, **more: Any) -> dict[str, Any]:
    return {"architectures": [class_name], **more}


@pytest.mark.parametrize(
    ("config", "steps", "task", "field", "file"),
    [
        (of("BertForSequenceClassification"), None, "rerank", "architectures[0]", "config.json"),
        (of("LlamaBidirectionalForSequenceClassification"), None, "rerank", "architectures[0]", "config.json"),
        (of("LlamaBidirectionalModel"), None, "embed", "architectures[0]", "config.json"),
        (of("BertForTokenClassification"), None, "token classification", "architectures[0]", "config.json"),
        *((of(name), None, "drafting for another model", "architectures[0]", "config.json") for name in DRAFTERS),
        (of("LlamaForCausalLM", dflash_config={"block_size": 4}), None, "drafting for another model",
         "dflash_config", "config.json"),
        (of("BertForQuestionAnswering"), None, "question answering", "architectures[0]", "config.json"),
        (of("Qwen3ForCausalLM"), POOLED, "embed", "type", "modules.json"),
        ({"use_bidirectional_attention": True}, None, "embed", "use_bidirectional_attention", "config.json"),
        ({"text_config": {"use_bidirectional_attention": "all"}}, None, "embed",
         "text_config.use_bidirectional_attention", "config.json"),
        (of("Ministral3Model", is_causal=False), None, "embed", "is_causal", "config.json"),
    ],
)  # fmt: skip
def test_what_the_files_say(config: dict[str, Any], steps: Steps | None, task: str, field: str, file: str) -> None:
    found = kind(config, steps=steps)
    assert (found.task, found.force) == (task, "said")
    assert (found.facts[0].field, found.facts[0].file) == (field, file)


def test_what_a_class_is_likely_for_and_what_says_nothing() -> None:
    assert (kind(of("LlamaForCausalLM")).task, kind(of("LlamaForCausalLM")).force) == ("generate", "likely")
    for config in ({}, of("BertModel"), of("BertForMaskedLM"), of("Eagle2_5_VLForConditionalGeneration"),
                   of("LlamaModel", dflash_config=None), {"use_bidirectional_attention": "vision"},
                   {"use_bidirectional_attention": False, "is_causal": True}, {"architectures": []}):  # fmt: skip
        assert kind(config) == Kind()
    assert kind(of("Qwen3ForCausalLM"), steps=SCORED).task == "generate"  # a generator that could judge, unasked


def test_the_tensors_of_a_head_count_where_no_class_is_named() -> None:
    names = ("bert.x", "classifier.weight", "classifier.bias")
    found = kind({"id2label": {"0": "relevance"}}, names)
    assert found.task == "rerank" and "classifier.bias" in str(found)
    assert "id2label has 1 label" in str(found) and kind({}, names[::-1]).facts[0] == kind({}, names).facts[0]
    assert kind(of("BertModel"), names) == Kind() and kind({"id2label": {"0": "a"}}, ("bert.x",)) == Kind()


def test_facts_that_disagree_are_both_named() -> None:
    with pytest.raises(ConfigError) as raised:
        kind(of("BertForSequenceClassification"), steps=POOLED)
    text = str(raised.value)
    assert "'BertForSequenceClassification' in config.json, which says rerank" in text
    assert "Pooling step in modules.json, which says embed" in text and "--task" in text


def test_what_is_asked_for_goes_first() -> None:
    found = kind(of("BertForSequenceClassification"), steps=POOLED, asked="embed")
    assert (found.task, found.force) == ("embed", "asked") and "asked for" in str(found)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"architectures": "BertModel"}, "architectures"),
        ({"architectures": [3]}, "architectures"),
        ({"is_causal": "no"}, "is_causal"),
        ({"use_bidirectional_attention": 1}, "use_bidirectional_attention"),
        ({"text_config": {"is_causal": []}}, "text_config.is_causal"),
    ],
)
def test_a_deciding_field_of_another_type_is_named(config: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as raised:
        kind(config)
    assert (raised.value.field, raised.value.file) == (field, "config.json")


@given(st.lists(st.sampled_from(["classifier.weight", "score.weight", "model.x", "vision_tower.y"]), unique=True),
       st.randoms())  # fmt: skip
def test_the_order_of_names_and_fields_decides_nothing(names: list[str], chance: random.Random) -> None:
    config = {"is_causal": False, "use_bidirectional_attention": True, "vision_config": {"a": 1}, "id2label": {}}
    mixed_names, mixed = chance.sample(names, len(names)), dict(chance.sample(list(config.items()), len(config)))
    first, second = evidence_of(config, names), evidence_of(mixed, mixed_names)
    assert (first.kind, first.vision) == (second.kind, second.vision)
