"""A rule file's text to a plan, or to faults with file, line and column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.fixtures import t0
from tests.runtime.support import T0_CONFIG, checkpoint
from weightloom.engine.errors import ConfigError, PluginError
from weightloom.runtime.authoring.replan import Replanned, replan
from weightloom.runtime.authoring.subject import Subject, open_subject

HEAD = "schema: 1\nfamily: mine\napplies_to: {model_types: [mine]}\nlayouts:\n  hf:\n    rules:\n"
FIRST = HEAD.count("\n") + 1
RIGHT = "      - rename: {from: '^net\\.', to: 'model.'}\n"


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    arrays = {name.replace("model.", "net.", 1): array for name, array in t0().items()}
    with open_subject(checkpoint(tmp_path, arrays)) as found:
        yield found


def tried(subject: Subject, rules: str) -> Replanned:
    return replan((HEAD + rules).encode(), "mine.yaml", subject)


def test_a_right_file_loads(subject: Subject) -> None:
    found = tried(subject, RIGHT)
    assert found.plan is not None and found.plan.ok() and found.error is None
    assert (found.layout, found.faults, found.misfits) == ("hf", (), ())
    assert "llama" in subject.target


def test_without_the_rule_names_are_missing(subject: Subject) -> None:
    found = tried(subject, "      - rename: {from: '^not_there\\.', to: 'model.'}\n")
    assert found.plan is not None and found.error is not None
    assert len(found.plan.report.missing) == len(found.plan.report.unexpected) > 10


@pytest.mark.parametrize(
    ("rules", "line", "text"),
    [
        ("      - rename: {from: '(', to: 'x'}\n", 0, "'('"),
        ("      - rename: {frm: 'a', to: 'x'}\n", 0, "frm"),
        ("      - renam: {from: 'a', to: 'x'}\n", 0, "renam"),
        ("      - convert: {from: 'a', to: 'b', ops: [{Chunk: {dimm: 0}}]}\n", 0, "dimm"),
        ("      - convert: {from: 'a', to: 'b', ops: [{Chunk: {dim: 'zero'}}]}\n", 0, "dim:"),
        ("      - convert: {from: 'a', to: 'b', ops: [{Chnk: {dim: 0}}]}\n", 0, "Chnk"),
        (RIGHT + "      - rename: {from: 'a', to: 'b'}\n        when: 'hidden_size * none_such'\n", 2, "'hidden"),
        (RIGHT + "      - rename: {from: 'a, to: 'b'}\n", 1, "b'}"),
        (RIGHT + "      - rename: {from: 'a', to: 'b'}\n        when: '('\n", 2, "'('"),
    ],
)
def test_what_is_wrong_has_line_and_column(subject: Subject, rules: str, line: int, text: str) -> None:
    found = tried(subject, rules)
    assert found.plan is None
    column = rules.splitlines()[line].index(text) + 1
    places = [(fault.file, fault.line, fault.column) for fault in found.faults]
    assert ("mine.yaml", FIRST + line, column) in places


def test_a_rule_that_leads_to_wrong_shapes_is_named(subject: Subject) -> None:
    wrong = "      - convert: {from: 'down_proj', to: 'down_proj', ops: [{Transpose: {}}]}\n"
    found = tried(subject, RIGHT + wrong)
    (fault,) = found.misfits
    assert (fault.line, fault.column) == (FIRST + 1, 9)
    assert "down_proj" in fault.seen and "and 1 more" in fault.seen


def test_what_the_linter_finds_is_a_warning(subject: Subject) -> None:
    found = tried(subject, RIGHT + "      - rename: {from: 'norm.bias', to: 'norm.beta'}\n")
    assert found.plan is not None
    assert [(each.code, each.line, each.column) for each in found.warnings] == [("WL101", FIRST + 1, 24)]


def test_alone_the_family_has_no_part(subject: Subject) -> None:
    assert len(subject.alone.after) < len(subject.after)
    assert tried(subject.alone, RIGHT).error is None


def test_an_architecture_may_be_named(tmp_path: Path) -> None:
    config = {**T0_CONFIG, "model_type": "nobodys", "architectures": ["Nobodys"]}
    with open_subject(checkpoint(tmp_path, config=config)) as found:
        assert found.parameters is None and "nobodys" in found.target
    with open_subject(tmp_path, arch="llama") as found:
        assert tried(found, RIGHT).error is None
    with pytest.raises(PluginError, match="nobodys"), open_subject(tmp_path, arch="nobodys"):
        pass


def test_a_config_is_needed_for_an_architecture(tmp_path: Path) -> None:
    (checkpoint(tmp_path) / "config.json").unlink()
    with pytest.raises(ConfigError, match="sizes"), open_subject(tmp_path, arch="llama"):
        pass
    with open_subject(tmp_path) as found:
        assert tried(found, RIGHT).error is None


def test_modules_that_a_vendor_packed_are_seen_as_plain(tmp_path: Path) -> None:
    arrays = dict(t0())
    scaled = "model.layers.0.mlp.down_proj.weight"
    arrays[f"{scaled}_scale_inv"] = arrays[scaled][:1, :1]
    with open_subject(checkpoint(tmp_path, arrays)) as found:
        assert found.plain.target.endswith("1 tensor beside packed weights set aside")
        assert tried(found, RIGHT).error is not None
        assert tried(found.plain, RIGHT).error is None
