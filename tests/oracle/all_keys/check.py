"""One job: the published layout through our rules and back, against the reference implementation's own loading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.oracle import peer
from tests.oracle.all_keys.arrays import differences, state_differences, state_of
from tests.oracle.all_keys.build import NoSuchModel, NotBuilt, build
from tests.oracle.all_keys.jobs import MTP, Job
from tests.oracle.all_keys.mtp import MtpTrial, build_mtp
from tests.oracle.all_keys.outcome import Kind, Outcome
from tests.oracle.all_keys.prefixes import with_and_without_prefix
from tests.oracle.all_keys.trial import Trial
from weightloom.engine import RuleSet, scoped_rules
from weightloom.engine.planning.resolve import resolve, resolve_each
from weightloom.rules import module_nodes, registry

_SHOWN = 4
# Its head holds the base model under `model`, whatever the class says.
OTHER_BASE = ("llama4_text",)
# Its config is written with another model type than the one that it has rules for.
OTHER_TYPE = ("mlcd",)


Step = Callable[[Trial], Iterator[str]]


def check(job: Job, directory: Path, dtype: str = "float32") -> Outcome:
    """Compare one job in an empty directory; an error of either side is a reason, never raised."""
    return compare(job, directory, dtype, steps=STEPS, kind=_kind)


def compare(
    job: Job,
    directory: Path,
    dtype: str = "float32",
    *,
    steps: Sequence[Step],
    kind: Callable[[Trial], Kind] = lambda _: "ok",
) -> Outcome:
    """Build a job's model and take these steps; `kind` says what it is called where none finds a difference."""
    try:
        built = build_mtp() if job.key == MTP else build(job)
    except NoSuchModel as reason:
        return Outcome(str(job), "no such model", (str(reason),))
    except Exception as error:  # whatever the reference implementation raises
        return Outcome(str(job), "not built", (str(error) if isinstance(error, NotBuilt) else _line(error),))
    trial = (MtpTrial if job.key == MTP else Trial)(job, built, directory, dtype)
    reasons = tuple(reason for step in steps for reason in _tried(step, trial))
    return Outcome(str(job), "differs", reasons) if reasons else Outcome(str(job), kind(trial), (), trial.notes)


def _kind(trial: Trial) -> Kind:
    return "ok, dtypes kept" if trial.dtypes_changed else "ok"


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
    _, info = trial.theirs
    yield from (f"{kind} {names[:_SHOWN]}" for kind, names in peer.misfits(info).items())
    yield from state_differences(state_of(trial.built.model), trial.state)


def _fits(trial: Trial) -> Iterator[str]:
    """Nothing is missing, unexpected, ambiguous or lossy, and the way back is known."""
    if not trial.plan.ok():
        yield from trial.plan.report.lines(_SHOWN)
    if not trial.plan.invertible:
        yield "the plan has no inverse"


def _by_template_as_name_by_name(trial: Trial) -> Iterator[str]:
    """Names resolved by their shape go where each would go on its own."""
    names = sorted(trial.checkpoint.tensors)
    active = [rule.bound(trial.config) for rule in trial.rules if rule.applies(trial.config, {})]
    fast, slow = resolve(names, active)[1], resolve_each(names, active)[1]
    yield from (one.name for one, other in zip(fast, slow, strict=True) if one != other)


def _rules_from_the_config(trial: Trial) -> Iterator[str]:
    """The rule files tell the same rules, without the model, from what config.json says."""
    model = trial.built.model if trial.job.key in OTHER_TYPE else trial.theirs[0]
    root, *below = peer.nodes_of(model)
    name = root.class_name if root.class_name in registry.identifiers() else root.model_type or ""
    told = module_nodes(root.class_name, root.model_type, registry.tree(name), trial.config, registry.part_class)
    base = registry.base_model_prefix(name)
    theirs = scoped_rules((root, *sorted(below, key=lambda node: node.path.split("."))), registry, base)
    if base != model.base_model_prefix and name not in OTHER_BASE:
        yield f"base model prefix {base!r}"
    yield from _rule_differences(scoped_rules(told, registry, base), theirs)


def _rule_differences(ours: RuleSet, theirs: RuleSet) -> Iterator[str]:
    mine, its = ([f"{rule.title()} in {rule.scope}" for rule in rules] for rules in (ours, theirs))
    yield from (f"not by the config: {title}" for title in its if title not in mine)
    yield from (f"only by the config: {title}" for title in mine if title not in its)


def _parameters(trial: Trial) -> Iterator[str]:
    """Every parameter as theirs, bit for bit."""
    yield from differences(trial.plan.load(), trial.plan.params, trial.state)


def _written_back(trial: Trial) -> Iterator[str]:
    """The original layout, byte for byte."""
    trial.plan.save(trial.plan.load(), trial.directory / "again")
    for path in sorted(trial.source.glob("*.safetensors*")):
        if (trial.directory / "again" / path.name).read_bytes() != path.read_bytes():
            yield f"{path.name} differs"


STEPS: tuple[Step, ...] = (
    _reference_loads_its_own,
    _fits,
    _by_template_as_name_by_name,
    _rules_from_the_config,
    _parameters,
    _written_back,
    with_and_without_prefix,
)
