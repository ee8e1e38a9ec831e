"""One job: the published layout through our rules and back, against the reference implementation's own loading."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from re import escape
from typing import TYPE_CHECKING, Any

from tests.oracle import peer
from tests.oracle.all_keys.arrays import differences, specs_of, state_differences, state_of, to_mlx
from tests.oracle.all_keys.build import Built, NotBuilt, build
from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.outcome import Outcome
from tests.oracle.all_keys.published import publish
from weightloom.engine import Checkpoint, ModuleNode, Plan, RuleSet, Tie, build_plan, save_plan, scoped_rules

if TYPE_CHECKING:
    import torch

_SHOWN = 4
# Classes whose own loading fails where it is asked what it left over.
SAYS_NOTHING = ("JevForDecision",)
TIES_ADDED = "ties taken from the model"


def check(job: Job, directory: Path, dtype: str = "float32", steps: Sequence[Step] | None = None) -> Outcome:
    """Compare one job in an empty directory; an error of either side is a reason, never raised."""
    try:
        built = build(job)
    except NotBuilt as reason:
        return Outcome(str(job), "not built", (str(reason),))
    except Exception as error:  # whatever the reference implementation raises
        return Outcome(str(job), "not built", (_line(error),))
    trial = Trial(job, built, directory, dtype)
    reasons = tuple(reason for step in steps or STEPS for reason in _tried(step, trial))
    return Outcome(str(job), "differs", reasons) if reasons else Outcome(str(job), "ok", (), trial.notes)


@dataclass(frozen=True)
class Trial:
    """A job while it is compared; what several steps need is made once."""

    job: Job
    built: Built
    directory: Path
    dtype: str

    @cached_property
    def source(self) -> Path:
        """A directory with the checkpoint in its published layout, written by the reference implementation."""
        import torch

        model = self.built.model.to(getattr(torch, self.dtype))
        with peer.quiet():
            model.save_pretrained(self.directory / "source")
        publish(self.job.key, self.directory / "source")
        return self.directory / "source"

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config beside it."""
        found: dict[str, Any] = json.loads((self.source / "config.json").read_text())
        return found

    @cached_property
    def state(self) -> dict[str, torch.Tensor]:
        """What the reference implementation loads from it."""
        model, _ = self.loaded(self.source)
        return state_of(model)

    @cached_property
    def nodes(self) -> tuple[ModuleNode, ...]:
        """The model's tree."""
        from transformers import PreTrainedModel

        modules = [(p, m) for p, m in self.built.model.named_modules() if isinstance(m, PreTrainedModel)]
        return tuple(ModuleNode(path, type(m).__name__, m.config.model_type) for path, m in modules)

    @cached_property
    def shipped(self) -> RuleSet:
        """The rules that ship, scoped to the model's tree."""
        from weightloom.rules import registry

        return scoped_rules(self.nodes, registry, self.built.model.base_model_prefix)

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """Ties that the model has and no shipped rule says: which parameters share a tensor is known to it alone."""
        pairs = getattr(self.built.model, "all_tied_weights_keys", None) or {}
        known = [r for r in self.shipped if isinstance(r, Tie) and r.applies(self.config, {})]
        names = state_of(self.built.model)
        return tuple(
            Tie(f"^{escape(name)}$", other)
            for name, other in sorted(pairs.items())
            if name in names and other in names and not any(rule.other_end(name) == other for rule in known)
        )

    @property
    def rules(self) -> RuleSet:
        """All rules for the model."""
        return RuleSet((*self.shipped, *self.ties), self.shipped.base_model_prefix)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else there is to know."""
        return (TIES_ADDED,) if self.ties else ()

    @cached_property
    def plan(self) -> Plan:
        """Our plan for the checkpoint."""
        params = specs_of(state_of(self.built.model))
        return build_plan(Checkpoint.open(self.source), self.rules, params, config=self.config)

    def loaded(self, directory: Path) -> tuple[Any, dict[str, Any]]:
        """Load a directory by the reference implementation, in the dtype of its files: (model, what it says)."""
        config = self.built.config_class.from_pretrained(directory)
        load = partial(self.built.model_class.from_pretrained, directory, config=config, local_files_only=True)
        with peer.quiet():
            if self.built.model_class.__name__ in SAYS_NOTHING:
                return load(dtype="auto"), {}
            found: tuple[Any, dict[str, Any]] = load(output_loading_info=True, dtype="auto")
        return found


Step = Callable[[Trial], Iterator[str]]


def _tried(step: Step, trial: Trial) -> list[str]:
    name = step.__name__.strip("_").replace("_", " ")
    try:
        found = list(step(trial))
    except Exception as error:  # either side's; it is what is compared
        found = [_line(error)]
    shown = found[:_SHOWN] + ([f"... {len(found)} in all"] if len(found) > _SHOWN else [])
    return [f"{name}: {reason}" for reason in shown]


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' | '.join(str(error).splitlines()[:3])}"[:400]


def _reference_loads_its_own(trial: Trial) -> Iterator[str]:
    """Else there is nothing to compare with."""
    _, info = trial.loaded(trial.source)
    yield from (f"{kind} {names[:_SHOWN]}" for kind, names in peer.misfits(info).items())
    yield from state_differences(state_of(trial.built.model), trial.state)


def _fits(trial: Trial) -> Iterator[str]:
    """Nothing is missing, unexpected, ambiguous or lossy, and the way back is known."""
    if not trial.plan.ok():
        yield from trial.plan.report.lines(_SHOWN)
    if not trial.plan.invertible:
        yield "the plan has no inverse"


def _parameters(trial: Trial) -> Iterator[str]:
    """Every parameter as theirs, bit for bit."""
    yield from differences(trial.plan.load(), trial.plan.params, trial.state)


def _written_back(trial: Trial) -> Iterator[str]:
    """The original layout, byte for byte."""
    trial.plan.save(trial.plan.load(), trial.directory / "again")
    for path in sorted(trial.source.glob("*.safetensors*")):
        if (trial.directory / "again" / path.name).read_bytes() != path.read_bytes():
            yield f"{path.name} differs"


def written_fresh(trial: Trial) -> Iterator[str]:
    """A model that was never loaded is written in the published layout, and theirs loads it whole."""
    state = state_of(trial.built.model)
    plan = save_plan(trial.rules, specs_of(state, dtypes=True), trial.config)
    published = set(Checkpoint.open(trial.source).tensors)
    yield from (f"only published: {name}" for name in sorted(published - set(plan.sources)))
    yield from (f"only written: {name}" for name in sorted(set(plan.sources) - published))
    target = trial.directory / "fresh"
    plan.save({name: to_mlx(tensor) for name, tensor in state.items()}, target)
    shutil.copy(trial.source / "config.json", target)
    model, info = trial.loaded(target)
    yield from (f"{kind} {names[:_SHOWN]}" for kind, names in peer.misfits(info).items())
    yield from state_differences(state, state_of(model))


STEPS: tuple[Step, ...] = (_reference_loads_its_own, _fits, _parameters, _written_back, written_fresh)
