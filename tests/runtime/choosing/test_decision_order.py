"""The same directory gives the same decision, whatever the order of its files, tensors and fields."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.fixtures import write
from tests.runtime.models import changed, classifier, runnable, sentence_files, vlm, write_model
from weightloom.engine.errors import ConfigError, PluginError
from weightloom.runtime import inspect, load


def shuffled(source: Path, target: Path, chance: random.Random) -> Path:
    """Write a checkpoint again: files made in another order, names in several shards, fields in another order."""
    arrays = list(mx.load(str(source / "model.safetensors")).items())
    chance.shuffle(arrays)
    parts = [arrays[number::3] for number in range(3)]
    others = [file for file in source.rglob("*.json") if file.name != "model.safetensors.index.json"]
    makers: list[Any] = [*range(3), *others]
    chance.shuffle(makers)
    for maker in makers:
        if isinstance(maker, int):
            write(target / f"part{maker}.safetensors", {name: np.array(array) for name, array in parts[maker]})
            continue
        place = target / maker.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        content = json.loads(maker.read_text())
        mixed = dict(chance.sample(list(content.items()), len(content))) if isinstance(content, dict) else content
        place.write_text(json.dumps(mixed))
    return target


def outcome(path: Path) -> tuple[object, ...]:
    """What is decided, and what a load makes of it; places are left out."""
    found = inspect(path)
    facts = [(fact.text.replace(str(path), ""), fact.field) for fact in found.loads_as.facts]
    refused = (found.loads_as.refused or "").replace(str(path), "")
    shown = (found.loads_as.architecture, found.loads_as.task, refused, found.layout, found.vision)
    try:
        m = load(path)
    except (ConfigError, PluginError) as error:
        return (*shown, facts, str(error).replace(str(path), ""))
    return (*shown, facts, m.architecture.name, m.task, m.half and m.half.note)


KINDS: dict[str, Any] = {
    "encoder": lambda folder: sentence_files(runnable(folder, "bert")),
    "classifier": lambda folder: changed(classifier(folder), architectures=None),
    "contradiction": lambda folder: sentence_files(classifier(folder)),
    "decoder": lambda folder: runnable(folder, architectures=["LlamaForCausalLM"]),
    "by class": lambda folder: changed(
        write_model(folder, "llama"), model_type=None, architectures=["LlamaForCausalLM"]
    ),
    "vision": vlm,
    "text of several": lambda folder: changed(vlm(folder), language_model_only=True),
    "both ways": lambda folder: changed(
        write_model(folder, "llama"), is_causal=False, use_bidirectional_attention=True
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(st.randoms(use_true_random=False))
def test_the_same_directory_gives_the_same_decision_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, kind: str, chance: random.Random
) -> None:
    source = KINDS[kind](tmp_path_factory.mktemp("source"))
    first = outcome(shuffled(source, tmp_path_factory.mktemp("first"), random.Random(0)))
    assert outcome(shuffled(source, tmp_path_factory.mktemp("second"), chance)) == first
