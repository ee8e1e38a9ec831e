"""Whatever is wrong with a rule, the error says in which file, line and column: when it is read, and when it acts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weightloom.engine import Checkpoint, TensorSpec, build_plan
from weightloom.engine.errors import WeightloomError
from weightloom.engine.mapping import patterns
from weightloom.rules import load_rules

HEAD = "schema: 1\nfamily: mine\napplies_to: {model_types: [mine]}\nlayouts:\n  hf:\n    rules:\n"
SPECS = {"a.weight": TensorSpec("F32", (4, 6)), "a" * 40: TensorSpec("F32", (2,)), "b.0.w": TensorSpec("F32", (2, 2))}
PARAMS = {"c.weight": TensorSpec("F32", (5, 6)), "d": TensorSpec("F32", (3, 2, 2))}

# Each is one rule; what is wrong shows as the file is read, or as it is planned.
WRONG = {
    "not YAML": "- rename: {from: '}",
    "an anchor": "- rename: &a {from: a, to: b}",
    "a word that is a truth": "- rename: {from: on, to: b}",
    "no such kind": "- renam: {from: a, to: b}",
    "two kinds": "- {rename: {from: a, to: b}, drop: ['a']}",
    "no such key": "- rename: {frm: a, to: b}",
    "no pattern": "- rename: {from: '(', to: b}",
    "a group that is not captured": "- rename: {from: 'a', to: '\\1'}",
    "a target that is no template": "- rename: {from: 'a', to: 'b$'}",
    "stars that do not pair": "- rename: {from: 'a', to: 'b.*.c'}",
    "no such op": "- convert: {from: a, to: b, ops: [{Chnk: {dim: 0}}]}",
    "no such argument": "- convert: {from: a, to: b, ops: [{Chunk: {dm: 0}}]}",
    "an argument of another type": "- convert: {from: a, to: b, ops: [{Chunk: {dim: a}}]}",
    "a value that the op refuses": "- convert: {from: a, to: b, ops: [{Permute: {axes: [0, 0]}}]}",
    "no expression": "- {rename: {from: a, to: b}, when: 'hidden_size *'}",
    "a call in an expression": "- {rename: {from: a, to: b}, when: 'open(1)'}",
    "a field that the config lacks": "- {rename: {from: a, to: b}, when: 'hidden_size * none_such'}",
    "layers that the config does not count": "- drop_layers: {below: '^b', first: none_such, count: none_such}",
    "layers that are no list": "- rename: {from: '^b', to: 'c', layers: none_such}",
    "a pattern that does not end": "- rename: {from: '(a|a)+(a|a)+(a|a)+(a|a)+b', to: c}",
    "a drop that does not end": "- drop: ['(a|a)+(a|a)+(a|a)+(a|a)+b']",
    "sizes that do not add up": "- convert: {from: 'a\\.weight', to: 'c.weight', ops: [{Split: {sizes: [1, 2]}}]}",
    "another shape": "- convert: {from: 'a\\.weight', to: 'c.weight', ops: [{Transpose: {}}]}",
    "numbers that are lacking": "- convert: {from: 'b\\.*.w', to: 'd', ops: [{MergeModulelist: {dim: 0}}]}",
}


@pytest.mark.parametrize("rule", WRONG.values(), ids=WRONG.keys())
def test_the_error_says_where(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.1)
    file = tmp_path / "mine.yaml"
    file.write_text(f"{HEAD}      {rule}\n")
    with pytest.raises(WeightloomError) as caught:
        build_plan(Checkpoint.from_specs(SPECS), load_rules(file), PARAMS, config={"hidden_size": 4}).check()
    place = re.fullmatch(rf"{re.escape(str(file))}:(\d+):(\d+)", caught.value.file or "")
    assert place is not None, caught.value
    assert int(place[1]) > HEAD.count("\n") and int(place[2]) > 0
