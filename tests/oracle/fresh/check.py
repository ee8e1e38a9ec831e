"""One job: a model that was never loaded, written in its published layout, and loaded by both sides."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from functools import partial

from tests.oracle import peer
from tests.oracle.all_keys.arrays import differences, specs_of, state_differences, state_of, to_mlx
from tests.oracle.all_keys.check import compare
from tests.oracle.all_keys.jobs import MTP, Job, jobs
from tests.oracle.all_keys.trial import Trial
from weightloom.engine import Checkpoint, PrefixChange, build_plan, save_plan

_MOST = 4


def written_fresh(trial: Trial) -> Iterator[str]:
    """A model that was never loaded is written in the published layout, and theirs loads it whole."""
    state = state_of(trial.built.model)
    plan = save_plan(trial.rules, specs_of(state, dtypes=True), trial.config)
    published = set(trial.checkpoint.tensors)
    yield from (f"only published: {name}" for name in sorted(published - set(plan.sources)))
    yield from (f"only written: {name}" for name in sorted(set(plan.sources) - published))
    target = trial.directory / "fresh"
    plan.save({name: to_mlx(tensor) for name, tensor in state.items()}, target)
    shutil.copy(trial.source / "config.json", target)
    model, info = trial.loaded(target)
    yield from (f"{kind} {names[:_MOST]}" for kind, names in peer.misfits(info).items())
    yield from state_differences(state, state_of(model))


def loaded_again(trial: Trial) -> Iterator[str]:
    """What was written gives the parameters back, and is written a second time under the same names."""
    state = state_of(trial.built.model)
    plan = build_plan(Checkpoint.open(trial.directory / "fresh"), trial.rules, specs_of(state), config=trial.config)
    if not plan.ok():
        yield from plan.report.lines()
    yield from differences(plan.load(), plan.params, state)
    again = save_plan(trial.rules, plan.params, trial.config)
    yield from (f"written once only: {name}" for name in sorted(set(plan.sources) ^ set(again.sources)))


def says_what_it_leaves_out(trial: Trial) -> Iterator[str]:
    """Each prefix change that acts and is not written is among the notes."""
    plan = save_plan(trial.rules, specs_of(state_of(trial.built.model), dtypes=True), trial.config)
    active = [rule for rule in trial.rules if isinstance(rule, PrefixChange) and rule.applies(trial.config, {})]
    for rule in active:
        if not rule.always and not any(rule.title() in note for note in plan.report.notes):
            yield f"no note of {rule.title()}"


check_fresh = partial(compare, steps=(written_fresh, loaded_again, says_what_it_leaves_out))


def fresh_jobs(only: Iterable[str] = ()) -> list[Job]:
    """All jobs but one: layers that guess further tokens are written into their main model's file, never alone."""
    return [job for job in jobs(only) if job.key != MTP]
