"""What rules owe to the linter: nothing is found in the files that an architecture is read by."""

from __future__ import annotations

from pathlib import Path

from weightloom.rules import lint_rules
from weightloom.rules.one_way import one_way_notes
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.conformance.subject import Subject


def the_linter_finds_nothing(subject: Subject) -> None:
    """The linter has nothing to say of the rule files, and every op of the plugin's own rules has an inverse."""
    rules = model_rules(subject.architecture, subject.config, subject.sample.layout)
    files = {rule.place.file for rule in rules if rule.place is not None and rule.place.line is not None}
    found = [finding for file in sorted(files) for finding in lint_rules(_path(file))]
    assert not found, "\n".join(map(str, found))
    notes = list(one_way_notes(subject.architecture.rules))
    assert not notes, notes


def _path(file: str) -> Path:
    """Give the path of a rule file from what its rules call it; those that ship are called by their package."""
    from weightloom.rules.sources import shipped_sources

    return next((source.path for source in shipped_sources() if source.label == file), Path(file))
