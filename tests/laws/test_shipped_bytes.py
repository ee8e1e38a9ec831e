"""The laws on bytes over every rule set that ships: real files whose names its own patterns match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from safetensors.numpy import save_file

from weightloom.engine import Checkpoint, Plan, RuleSet, Sharding, TensorSpec, WeightConverter, build_plan
from weightloom.engine.carrier import carried, spec_of
from weightloom.engine.patterns import SourcePattern
from weightloom.engine.renaming import Renaming
from weightloom.rules import load_rules, registry
from weightloom.rules.examples import example

SHIPPED = [(family, layout) for family in registry.families() for layout in registry.layouts(family)]
# 24 rows divide by the counts that published layouts have; 2 heads of 12.
SHAPES = ((24, 24), (24, 24, 24))
CONFIG = {"num_attention_heads": 2, "num_key_value_heads": 2, "hidden_size": 24, "head_dim": 12}


def shipped(family: str, layout: str) -> RuleSet:
    """A rule set without its conditions; of rules for the same names under other conditions, the first."""
    seen: dict[object, object] = {}
    rules = load_rules(family, layout).replace_all(when=None)
    first = [rule for rule in rules if seen.setdefault(getattr(rule, "source_patterns", rule), rule) is rule]
    return RuleSet(first, rules.base_model_prefix)


def numbered(rule: WeightConverter, index: int, name: str, source: SourcePattern) -> Iterator[str]:
    """The same name with the numbers 0 to 2 in the place of the star that collects."""
    found = source.compiled.search(name)
    assert found is not None
    start, end = found.span(source.stars[rule.paired])
    yield from (f"{name[:start]}{number}{name[end:]}" for number in range(3))


def names_of(rules: RuleSet) -> list[str]:
    """A name for each source pattern of each rule; three for one that collects."""
    names: dict[str, None] = {}
    for rule in rules:
        for index, source in enumerate(rule.sources if isinstance(rule, Renaming) else ()):
            shown = example(source)
            name = next((each for each in (f"layers.0.{shown}", shown) if each and source.search(each)), None)
            if name is None or name == "__metadata__":
                continue
            collects = isinstance(rule, WeightConverter) and rule.collects(index)
            names |= dict.fromkeys(numbered(rule, index, name, source) if collects else [name])
    return list(names)


def fitting(rules: RuleSet) -> Plan:
    """A plan, from names and shapes alone, of those of the names that go together: matrices, else stacks of them."""
    plans = (_fitting(rules, TensorSpec("F32", shape)) for shape in SHAPES)
    return next((plan for plan in plans if plan.groups), _fitting(rules, TensorSpec("F32", SHAPES[0])))


def _fitting(rules: RuleSet, spec: TensorSpec) -> Plan:
    names = names_of(rules)
    for _ in range(len(names) + 1):
        plan = build_plan(Checkpoint.from_specs(dict.fromkeys(names, spec)), rules, config=CONFIG)
        if plan.ok() or not names:
            break
        apart = {kept.name for kept in plan.kept if kept.reason != "dropped"}
        names = [name for name in names if name not in apart]
    return plan


@pytest.mark.parametrize(("family", "layout"), SHIPPED)
def test_what_is_read_is_written_and_shards_add_up(family: str, layout: str, tmp_path: Path) -> None:
    rules = shipped(family, layout)
    expected = fitting(rules)
    if not expected.groups:
        assert all(not isinstance(rule, Renaming) for rule in rules)
        return
    draw = np.random.default_rng(7)
    path = tmp_path / "model.safetensors"
    save_file({name: draw.standard_normal(spec.shape, np.float32) for name, spec in expected.sources.items()}, path)
    plan = build_plan(Checkpoint.open(path), rules, config=CONFIG)
    # Law 3: a checkpoint that cannot be read gives the same plan.
    assert (plan.groups, plan.kept, plan.report) == (expected.groups, expected.kept, expected.report)
    loaded = plan.load()
    # Law 4.
    assert {name: spec_of(array) for name, array in loaded.items()} == {
        name: carried(spec) for name, spec in plan.params.items()
    }
    if plan.invertible:
        # Law 1.
        (written,) = plan.save(loaded, tmp_path / "out")
        assert written.read_bytes() == path.read_bytes()
    check_shards(plan, loaded)


def check_shards(plan: Plan, loaded: dict[str, mx.array]) -> None:
    """Law 6: the first axis in two parts, of everything that has an even one and only moves elements."""
    moved = {name for group in plan.groups if group.program.is_structural for name in group.targets}
    if moved != set(plan.params):
        return
    kinds = {rf"^{name.replace('.', '[.]')}$": "vocab" for name, a in loaded.items() if a.shape and a.shape[0] % 2 == 0}
    parts = [plan.load(sharding=Sharding(rank, 2, kinds)) for rank in range(2)]  # type: ignore[arg-type]
    for name, whole in loaded.items():
        if whole.shape and whole.shape[0] % 2 == 0 and whole.shape[0]:
            joined = mx.concatenate([part[name] for part in parts], axis=0)
            assert mx.array_equal(joined.view(mx.uint32), whole.view(mx.uint32)), name


def test_most_converters_that_ship_take_part() -> None:
    fired, total = 0, 0
    for family, layout in SHIPPED:
        rules = shipped(family, layout)
        converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
        used = {group.rule for group in fitting(rules).groups}
        total += len(converters)
        fired += sum(rule in used for rule in converters)
    assert fired >= 0.7 * total, f"{fired} of {total}"
