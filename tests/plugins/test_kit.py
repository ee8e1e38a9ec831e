"""The kit finds what is wrong: each law, on an architecture that breaks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.plugins.installed import install
from weightloom.engine.errors import WeightloomError
from weightloom.plugins.testing import Conformance, Sample, Subject, Verdict, judge
from weightloom.runtime.conformance import configs, loading, packed, running, saving
from weightloom.runtime.conformance.sample import Array
from weightloom.runtime.conformance.spelling import other_spellings_say_the_same
from weightloom.runtime.conformance.subject import make_subject
from weightloom.runtime.conformance.verdict import head, measured_samples

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

class Memory:
    total, seen, padding = 0.0, 0, None

    def without_padding(self, hidden):
        positions = mx.arange(self.seen, self.seen + hidden.shape[1])
        self.seen += hidden.shape[1]
        return hidden if self.padding is None else hidden * (positions[:, None] >= self.padding[:, None, None])

class Model(nn.Module):
    def __init__(self, fields):
        super().__init__()
        self.table = nn.Embedding(fields.vocab_size, fields.width)
        self.head = nn.Linear(fields.width, fields.vocab_size, bias=False)

    def make_cache(self):
        return [Memory()]

    def __call__(self, tokens, mask=None):
        """A sum over all that came before: as much of a memory as the laws need."""
        hidden = self.table(tokens)
        if isinstance(mask, list):
            total = mx.cumsum(mask[0].without_padding(hidden), axis=1) + mask[0].total
            mask[0].total = total[:, -1:]
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
    arrays = {name: np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    return np.cumsum(arrays["net.weight"][tokens], axis=1) @ arrays["head.weight"].T


def test_a_sound_architecture_passes(made: Callable[..., Subject], tmp_path: Path) -> None:
    sample = Sample("plain", CONFIG, reference=reference, published=("net.weight", "head.weight"))
    subject = made(sample=sample)
    configs.sharding_cuts_something(subject.architecture, (sample,))
    (tmp_path / "judged").mkdir()
    verdict = judge(replace(sample, spellings=(dict,)), tmp_path / "judged")
    assert verdict.broken == ()
    assert verdict.differences.keys() == {"whole", "cached", "4 bits", "spelt"}
    assert max(verdict.differences.values()) <= sample.tolerance


WRAP = "_call = __call__\ndef __call__(self, tokens, mask=None):\n    answers = self._call(tokens, mask)\n    return {}"
HALVED = (
    "def load_weights(self, weights, strict=True):\n"
    "    return super().load_weights([(name, array[::-1] // 2) for name, array in weights], strict)"
)
BROKEN: dict[str, tuple[Law, str, str]] = {
    "a model type without an entry point": (
        configs.it_is_found_by_every_model_type,
        "",
        'model_types=("sums", "summed")',
    ),
    "a config that raises what it likes": (
        configs.every_wrong_field_is_named,
        "",
        'read_config=lambda content: Fields(int(content["vocab_size"]), int(content["width"]))',
    ),
    "a module that changes what it is given": (loading.parameters_are_as_written, HALVED, ""),
    "elements that are in no file": (loading.elements_are_those_of_the_files, HALVED, ""),
    "words that are not MLX's": (packed.packing_on_load_packs_the_same, HALVED, ""),
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


def write(folder: Path, names: tuple[str, str] = ("net.weight", "head.weight"), **more: object) -> None:
    """Write a checkpoint without the kit."""
    rng = np.random.default_rng(3)
    arrays = {name: rng.standard_normal((32, 32)).astype(np.float32) for name in names}
    save_file(arrays, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 32, **more}), encoding="utf-8")


def test_a_checkpoint_of_somebody_else_is_held_to_the_laws(made: Callable[..., Subject], tmp_path: Path) -> None:
    sample = Sample("theirs", CONFIG, checkpoint=write, reference=reference)
    subject = made(sample=sample)
    assert subject.params.keys() == {"table.weight", "head.weight"}
    assert mx.array_equal(
        subject.params["table.weight"], mx.load(str(subject.folder / "model.safetensors"))["net.weight"]
    )
    (tmp_path / "judged").mkdir()
    assert judge(sample, tmp_path / "judged").broken == ()


@pytest.mark.parametrize(
    ("names", "law"),
    [
        (("net.weight", "other.weight"), "elements_are_those_of_the_files"),
        (("a", "net.weight"), "the_reference_agrees"),
    ],
)
def test_what_does_not_load_breaks_its_laws(
    names: tuple[str, str], law: str, made: Callable[..., Subject], tmp_path: Path
) -> None:
    made()
    (tmp_path / "judged").mkdir()
    verdict = judge(Sample("theirs", CONFIG, reference, checkpoint=partial(write, names=names)), tmp_path / "judged")
    assert [each for each in verdict.broken if each.startswith(f"{law}: PlanError")]
    assert law in str(verdict)


def test_a_checkpoint_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise OSError("no room")

    assert judge(Sample("theirs", CONFIG, checkpoint=fail), tmp_path).broken == ("checkpoint: OSError: no room",)


@pytest.mark.parametrize(
    ("spelling", "said"),
    [
        (lambda config: {**config, "width": 64}, "width|shape|mismatch"),
        (lambda config: {**config, "model_type": "summed"}, "summed"),
    ],
)
def test_a_spelling_that_says_something_else_is_found(
    spelling: Callable[[dict[str, object]], dict[str, object]], said: str, made: Callable[..., Subject]
) -> None:
    subject = made(sample=Sample("plain", CONFIG, spellings=(spelling,)))
    with pytest.raises((AssertionError, WeightloomError), match=said):
        other_spellings_say_the_same(subject)


def test_numbers_are_a_row_of_a_table() -> None:
    row = str(Verdict("plain", {"whole": 1e-7, "spelt": 0.0}, ("a_law: it does not hold",)))
    first, second = row.splitlines()
    assert first.split() == ["1.0e-07", "-", "-", "-", "0.0e+00", "plain"]
    assert second.strip() == "BROKEN a_law: it does not hold"
    assert head().split() == ["whole", "cached", "padded", "4", "bits", "spelt", "sample"]


def test_the_report_has_a_row_for_each_sample_that_was_measured() -> None:
    node = "tests/x.py::TestX::test_law[tied-wide-{}]"
    measured = [("cached", {"cached": 2e-7}), ("a_law", {}), ("whole", {"whole": 1e-7})]
    reports = [(node.format(law), list(numbers.items())) for law, numbers in measured]
    reports += [("tests/x.py::test_of_no_class", []), ("tests/x.py", [])]
    assert [(each.sample, each.differences) for each in measured_samples(reports)] == [
        ("TestX: tied-wide", {"cached": 2e-7, "whole": 1e-7})
    ]


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
