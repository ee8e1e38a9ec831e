"""The kit finds what is wrong: each law, on an architecture that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.plugins.installed import install
from weightloom.engine.errors import WeightloomError
from weightloom.plugins.testing import Conformance, Sample, Subject
from weightloom.runtime.conformance import configs, loading, packed, running, saving
from weightloom.runtime.conformance.rulefiles import nothing_is_found
from weightloom.runtime.conformance.sample import Array
from weightloom.runtime.conformance.subject import make_subject

MODULE = '''
from dataclasses import dataclass
import mlx.core as mx
import mlx.nn as nn
from weightloom.engine import RuleSet, WeightConverter, WeightRenaming, Drop
from weightloom.engine.ops.base import ConversionOp
from weightloom.plugins import Architecture, hookimpl
from weightloom.plugins.configs.config import read

@dataclass(frozen=True)
class Fields:
    vocab_size: int
    width: int

class Model(nn.Module):
    def __init__(self, fields):
        super().__init__()
        self.table = nn.Embedding(fields.vocab_size, fields.width)
        self.head = nn.Linear(fields.width, fields.vocab_size, bias=False)

    def make_cache(self):
        return [[0.0]]

    def __call__(self, tokens, mask=None):
        """A sum over all that came before: as much of a memory as the laws need."""
        hidden = self.table(tokens)
        if isinstance(mask, list):
            total = mx.cumsum(hidden, axis=1) + mask[0][0]
            mask[0][0] = total[:, -1:]
        else:
            total = mx.cumsum(hidden, axis=1)
        return self.head(total)
{changes}

class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        return [Architecture(**{{**dict(
            name="sums", model_types=("sums",), task="generate", adapters="none",
            read_config=lambda content: read(Fields, content), build=Model,
            sharding={{r"^table\\.": "vocab"}}, rules=RuleSet([WeightRenaming("^net", "table")]),
        ), **dict({options})}})]

PLUGIN = Plugin()
'''
CONFIG = {"model_type": "sums", "vocab_size": 32, "width": 32}
PLAIN = Sample("plain", CONFIG)
Law = Callable[[Subject], object]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Subject]:
    """Install the plugin with changes, and write its sample."""

    def make(changes: str = "", options: str = "", sample: Sample = PLAIN) -> Subject:
        module = f"sums_{tmp_path.name}".replace("-", "_")
        points = {"sums": f"{module}:PLUGIN"}
        indented = "".join(f"    {line}\n" for line in changes.splitlines())
        site = tmp_path / "site"
        install(site, "sums", points, {module: MODULE.format(changes=indented, options=options)})
        monkeypatch.syspath_prepend(str(site))
        return make_subject(sample, tmp_path)

    return make


def reference(folder: Path, tokens: Array) -> Array:
    import mlx.core as mx

    arrays = {name: np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    return np.cumsum(arrays["net.weight"][tokens], axis=1) @ arrays["head.weight"].T


LAWS: tuple[Law, ...] = (
    configs.is_found_by_every_model_type,
    configs.every_wrong_field_is_named,
    nothing_is_found,
    loading.parameters_are_as_written,
    loading.inference_is_exact,
    loading.lazy_is_eager,
    loading.shards_add_up,
    loading.a_lacking_tensor_is_named,
    loading.a_stranger_is_named,
    loading.a_wrong_shape_is_named,
    saving.published_names_are_written,
    saving.a_save_is_what_was_read,
    saving.the_inverse_of_the_inverse_is_the_plan,
    saving.other_layouts_lead_back,
    running.the_reference_agrees,
    running.the_cache_changes_nothing,
    running.later_tokens_change_nothing,
    running.rows_do_not_see_each_other,
    running.the_dtype_is_kept,
    packed.packed_answers_are_those_of_the_matrices,
)


def test_a_sound_architecture_passes(made: Callable[..., Subject]) -> None:
    subject = made(sample=Sample("plain", CONFIG, reference=reference, published=("net.weight", "head.weight")))
    for law in LAWS:
        law(subject)
    configs.sharding_cuts_something(subject.architecture, (subject.sample,))


WRAP = "_call = __call__\ndef __call__(self, tokens, mask=None):\n    answers = self._call(tokens, mask)\n    return {}"
BROKEN: dict[str, tuple[Law, str, str]] = {
    "a model type without an entry point": (
        configs.is_found_by_every_model_type,
        "",
        'model_types=("sums", "summed")',
    ),
    "a config that raises what it likes": (
        configs.every_wrong_field_is_named,
        "",
        'read_config=lambda content: Fields(int(content["vocab_size"]), int(content["width"]))',
    ),
    "a rule that takes what it does not know": (loading.a_stranger_is_named, "", 'rules=RuleSet([Drop("stranger")])'),
    "a cache that forgets": (
        running.the_cache_changes_nothing,
        "def __call__(self, tokens, mask=None):\n    return self.head(mx.cumsum(self.table(tokens), axis=1))",
        "",
    ),
    "a look ahead": (
        running.later_tokens_change_nothing,
        WRAP.format("answers + answers.mean(axis=1, keepdims=True)"),
        "",
    ),
    "rows that mix": (
        running.rows_do_not_see_each_other,
        WRAP.format("answers + answers.mean(axis=0, keepdims=True)"),
        "",
    ),
    "answers of another dtype": (running.the_dtype_is_kept, WRAP.format("answers.astype(mx.float32)"), ""),
    "another sum": (running.the_reference_agrees, WRAP.format("answers * 1.001"), ""),
    "a head by its words": (
        packed.packed_answers_are_those_of_the_matrices,
        WRAP.format("answers + self.head.weight.sum()"),
        "",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_found(what: str, made: Callable[..., Subject]) -> None:
    law, changes, options = BROKEN[what]
    subject = made(changes, options, Sample("plain", CONFIG, reference=reference))
    with pytest.raises((AssertionError, WeightloomError, ValueError, TypeError)):
        law(subject)


def test_a_sharding_pattern_that_matches_nothing_is_found(made: Callable[..., Subject]) -> None:
    subject = made(options='sharding={r"^tabel": "vocab"}')
    with pytest.raises(AssertionError, match=r"\^tabel"):
        configs.sharding_cuts_something(subject.architecture, (subject.sample,))


def test_rules_that_do_not_lead_back_to_published_names_are_found(made: Callable[..., Subject]) -> None:
    order = 'rules=RuleSet([WeightRenaming(r"^net\\.inner", "table"), WeightRenaming("^net", "table")])'
    subject = made(options=order, sample=Sample("plain", CONFIG, published=("net.inner.weight",)))
    with pytest.raises(AssertionError, match=r"net\.inner\.weight.*a save writes \['head\.weight', 'net\.weight'\]"):
        saving.published_names_are_written(subject)


def test_samples_need_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="names of their own"):
        type("TestTwice", (Conformance,), {"samples": (Sample("a", CONFIG), Sample("a", CONFIG))})
