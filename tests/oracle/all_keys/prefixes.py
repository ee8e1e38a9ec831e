"""Published files with and without a prefix: the reference implementation reads both forms, and writes one of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.oracle import peer
from tests.oracle.all_keys.arrays import differences, specs_of, state_differences, state_of
from tests.oracle.all_keys.published import rewrite
from tests.oracle.all_keys.trial import Trial
from weightloom.engine import Checkpoint, PrefixChange, build_plan


def with_and_without_prefix(trial: Trial) -> Iterator[str]:
    """The other form of each prefix of the whole model is read alike, and written back byte for byte."""
    for number, rule in enumerate(trial.prefixes):
        directory = trial.directory / f"form{number}"
        shutil.copytree(trial.source, directory)
        rewrite(directory, lambda held, rule=rule: {_other_form(rule, name): one for name, one in held.items()})
        yield from (f"{rule.summary()}: {reason}" for reason in _read_alike(trial, directory))


def _other_form(rule: PrefixChange, name: str) -> str:
    other = rule.inverse().rewrite(name)
    return name if other is None or rule.rewrite(other) != name else other


def _read_alike(trial: Trial, directory: Path) -> Iterator[str]:
    model, info = trial.loaded(directory)
    yield from (f"theirs: {kind} {names[:4]}" for kind, names in peer.misfits(info).items())
    yield from (f"theirs: {name}" for name in state_differences(state_of(model), trial.state))
    params = specs_of(state_of(trial.built.model))
    plan = build_plan(Checkpoint.open(directory), trial.rules, params, config=trial.config)
    if not plan.ok():
        yield from plan.report.lines()
    arrays = plan.load()
    yield from differences(arrays, plan.params, trial.state)
    for path in plan.save(arrays, directory.with_name(f"{directory.name}-again")):
        if path.read_bytes() != (directory / path.name).read_bytes():
            yield f"{path.name} differs"
