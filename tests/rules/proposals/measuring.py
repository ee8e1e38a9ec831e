"""How much of a layout is recovered: tensors are right, right and marked, wrong and marked, wrong in silence, left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.rules.proposals.cases import Case
from tests.rules.proposals.comparing import same_group
from weightloom.engine import Checkpoint, Plan, RuleSet, build_plan
from weightloom.engine.planning.groups import Group
from weightloom.rules.extending import layout_rules
from weightloom.rules.lookup import registry
from weightloom.rules.parse import parse_rules
from weightloom.rules.proposing.proposal import Proposal
from weightloom.rules.proposing.propose import propose
from weightloom.rules.proposing.writing import rule_text
from weightloom.runtime.choosing.resolution import OUTERMOST
from weightloom.runtime.choosing.rule_choice import led_on

SURE, MARKED, DOUBTED, SILENT, LEFT = "right", "right, marked", "wrong, marked", "wrong in silence", "left over"
FATES = (SURE, MARKED, DOUBTED, SILENT, LEFT)


@dataclass(frozen=True)
class Measured:
    """The fates of a case's tensors; `changed` of those whose name or shape is another than the parameter's."""

    case: Case
    proposal: Proposal
    text: str
    plan: Plan
    fates: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]


def measured(case: Case) -> Measured:
    """Propose with the family's rules hidden, write the file, read it, plan by it, and hold that against the truth."""
    proposal = propose(case.tensors, case.canonical, case.config, case.known)
    text = rule_text(proposal, "proposed", "hf", ["proposed"], case.base)
    rules = layout_rules(parse_rules(text.encode(), "proposed.yaml"), "hf", registry.family)
    ruleset = led_on(case.architecture, RuleSet(rules.replace_all(scope=OUTERMOST), case.base), case.config)
    plan = build_plan(Checkpoint.from_specs(case.tensors), ruleset, case.params, config=case.config)
    found = Measured(case, proposal, text, plan)
    marked = {name for link in proposal.doubtful for name in link.names}
    made = plan.by_source
    for group in (*case.truth.groups, *case.truth.copies):
        right = same_group(group, made.get(group.sources[0]))
        for name in group.sources:
            fate = _fate(right, name in made, name in marked)
            found.fates[fate] += 1
            found.changed[fate] += not _as_it_is(case, group)
            found.examples.setdefault(fate, []).append(name)
    return found


def _as_it_is(case: Case, group: Group) -> bool:
    """Say whether a tensor has the parameter's name and shape, and its values."""
    known = case.canonical.get(group.sources[0])
    same = known is not None and known.shape == case.tensors[group.sources[0]].shape
    return same and len(group.sources) == len(group.targets) == 1 and group.program.is_identity


def _fate(right: bool, mapped: bool, marked: bool) -> str:
    if right:
        return MARKED if marked else SURE
    if not mapped:
        return LEFT
    return DOUBTED if marked else SILENT


def table(found: Iterable[Measured]) -> Iterator[str]:
    """Give a line for each family and layout, and the totals: over all tensors, and over those that change."""
    rows: dict[tuple[str, str], list[Measured]] = {}
    for each in found:
        rows.setdefault((each.case.family, each.case.layout), []).append(each)
    yield f"{'family':<26}{'layout':<8}{'tensors':>9}{'share':>8}" + "".join(f"{fate:>18}" for fate in FATES)
    for (family, layout), members in sorted(rows.items()):
        yield _row(family, layout, sum((each.fates for each in members), Counter()))
        changed = sum((each.changed for each in members), Counter())
        if changed:
            yield _row("", "changed", changed)
    everything = [each for members in rows.values() for each in members]
    yield _row("all", "", sum((each.fates for each in everything), Counter()))
    yield _row("all that change", "", sum((each.changed for each in everything), Counter()))


def share(fates: Counter[str]) -> float:
    """Give the share that is right, marked or not."""
    return (fates[SURE] + fates[MARKED]) / max(1, fates.total())


def _row(family: str, layout: str, fates: Counter[str]) -> str:
    counts = "".join(f"{fates[fate]:>18,}" for fate in FATES)
    return f"{family:<26}{layout:<8}{fates.total():>9,}{share(fates):>8.1%}{counts}"
