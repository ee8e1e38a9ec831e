"""A mapping known from the reference implementation carries over: its own rules, in ours, give the same plan."""

from __future__ import annotations

import pytest

from tests.oracle import peer
from tests.oracle.cases import each_case
from tests.oracle.conftest import Saved
from tests.oracle.models import model_of
from tests.oracle.translate import translated
from weightloom.engine import Checkpoint, Plan, RuleSet, build_plan, scoped_rules

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def mapped(plan: Plan) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(group.sources, group.targets) for group in (*plan.groups, *plan.copies)]


@each_case
def test_the_references_own_rules_give_the_same_plan(name: str, saved: Saved) -> None:
    directory = saved(name, "bfloat16", True)
    model = model_of(name, "bfloat16")
    shipped = peer.rules_of(model)
    theirs = scoped_rules(peer.nodes_of(model), translated, model.base_model_prefix)
    # Ties and drops are no rules there but attributes of a class.
    ours_alone = [rule for rule in shipped if rule not in peer.shared_kinds(shipped)]
    rules = RuleSet([*theirs, *ours_alone], model.base_model_prefix)
    config = peer.config_of(directory)
    plan = build_plan(Checkpoint.open(directory), rules, peer.param_specs(model), config=config)
    plan.check()
    assert mapped(plan) == mapped(peer.plan_for(name, "bfloat16", directory))
