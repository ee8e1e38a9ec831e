"""One family: published to mlx to published, held against what mlx-lm makes, loads, computes and saves itself."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle import peer
from tests.oracle.all_keys.arrays import state_of
from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.outcome import Outcome
from tests.oracle.all_keys.towers import NEEDS_TIMM, has_timm
from tests.oracle.mlx_layouts.families import FAMILIES
from tests.oracle.mlx_layouts.trial import Trial
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

SAME = 1e-5
_SHOWN = 4

Step = Callable[[Trial], Iterator[str]]


def check(job: Job, directory: Path) -> Outcome:
    """Compare one family in an empty directory; an error of any side is a reason, never raised."""
    if job.key in NEEDS_TIMM and not has_timm():
        return Outcome(str(job), "not built", ("it needs the extra towers",))
    trial = Trial(FAMILIES[job], directory)
    reasons = tuple(reason for step in STEPS for reason in _tried(step, trial))
    notes = tuple(note for step in FACTS for note in _tried(step, trial))
    return Outcome(str(job), "differs" if reasons else "ok", reasons, notes)


def _tried(step: Step, trial: Trial) -> list[str]:
    name = step.__name__.strip("_").replace("_", " ")
    try:
        found = list(step(trial))
    except Exception as error:  # any side's; it is what is compared
        found = [f"{type(error).__name__}: {' | '.join(str(error).splitlines()[:4])}"[:500]]
    shown = found[:_SHOWN] + ([f"... {len(found)} in all"] if len(found) > _SHOWN else [])
    return [f"{name}: {reason}" for reason in shown]


def _tensors(place: Path) -> dict[str, tuple[Any, bytes]]:
    files = peer.read_files(place)
    return {name: each for file in files if file.startswith("model") for name, each in files[file].items()}


def _as_sanitized(trial: Trial) -> Iterator[str]:
    """Our mlx form has the names, shapes and bytes that mlx-lm's own loader makes of the published form and saves."""
    ours, theirs = _tensors(trial.mlx), _tensors(trial.theirs)
    yield from (f"only ours: {name}" for name in sorted(ours.keys() - theirs.keys()))
    yield from (f"only theirs: {name}" for name in sorted(theirs.keys() - ours.keys()))
    yield from (
        f"{name}: ours {ours[name][0]}, theirs {theirs[name][0]}"
        for name in sorted(ours.keys() & theirs.keys())
        if ours[name] != theirs[name]
    )


def _logits(trial: Trial) -> Iterator[str]:
    """mlx-lm loads our mlx form strictly and computes what it computes on the published form."""
    if trial.family.unrun:
        return
    ours, theirs = (np.array(trial.logits(place)) for place in (trial.mlx, trial.sanitized))
    if not np.abs(ours - theirs).max() <= SAME:
        yield f"they differ by {np.abs(ours - theirs).max():.2g}"


def _as_the_reference(trial: Trial) -> Iterator[str]:
    """With our config, mlx-lm computes what the reference implementation does."""
    if trial.family.agrees is None:
        return
    far = _distance(trial)
    if not far <= trial.family.agrees:
        yield f"they differ by {far:.2g}"


def _distance(trial: Trial) -> float:
    ours = np.array(trial.logits(trial.mlx))
    return float(np.abs(ours - trial.reference_logits().numpy()).max())


def _back(trial: Trial) -> Iterator[str]:
    """From our mlx form the published form comes back byte for byte, every file of it."""
    yield from _led_back(trial.published, trial.mlx, trial.directory / "again")


def _back_from_theirs(trial: Trial) -> Iterator[str]:
    """So it does from what mlx-lm itself saved, with our kept file and our config's neighbours beside it."""
    place = trial.directory / "theirs_with_ours"
    shutil.copytree(trial.theirs, place)
    for path in trial.mlx.iterdir():
        if not path.name.startswith("model") and path.name != "config.json":
            shutil.copy(path, place)
    yield from _led_back(trial.published, place, trial.directory / "again_from_theirs")


def _led_back(published: Path, mlx: Path, target: Path) -> Iterator[str]:
    convert(mlx, Order(target, "hf"), Wish())
    before, after = ({path.name: path.read_bytes() for path in place.iterdir()} for place in (published, target))
    names = sorted(before.keys() | after.keys())
    yield from (f"{name} differs" for name in names if before.get(name) != after.get(name))


def _from_theirs(trial: Trial) -> Iterator[str]:
    """What mlx-lm saved goes to the published form; nothing is missing there but what mlx-lm threw away."""
    said = "\n".join((*trial.from_theirs.notes, *trial.from_theirs.left_out))
    model, info = trial.reference(trial.directory / "from_theirs")
    misfits = peer.misfits(info)
    missing = misfits.pop("missing_keys", [])
    yield from (f"{kind} {names[:_SHOWN]}" for kind, names in misfits.items())
    for name in missing:
        if not any(re.search(pattern, name) for pattern in trial.family.destroyed):
            yield f"missing {name}"
    if missing and not said:
        yield f"{len(missing)} parameters are missing, and nothing says so"
    state, wanted = state_of(model), state_of(trial.original)
    for name in sorted(wanted.keys() - set(missing)):
        if not np.allclose(state[name].float().numpy(), wanted[name].float().numpy(), rtol=0, atol=trial.family.rounds):
            yield f"{name} has other values"


def _facts(trial: Trial) -> Iterator[str]:
    """The row of the table."""
    published = len(_tensors(trial.published))
    lost = f"; said lost {len(trial.from_theirs.notes)}" if trial.from_theirs.notes else ""
    far = trial.family.unrun or f"from the reference {_distance(trial):.1e}"
    why = f" ({trial.family.why})" if trial.family.why else ""
    yield f"{published} -> {trial.to_mlx.tensors}, kept {len(trial.to_mlx.kept)}, {far}{why}{lost}"


STEPS: tuple[Step, ...] = (_as_sanitized, _logits, _as_the_reference, _back, _back_from_theirs, _from_theirs)
FACTS: tuple[Step, ...] = (_facts,)
