"""Names only, no model: every rule of a key fires, sends its names where the reference does, and takes them back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.oracle.all_keys.jobs import DEAD, mapping, registered
from tests.oracle.all_keys.pattern_names import names_for
from tests.rules.test_transformers import ours, theirs
from weightloom.engine import NotInvertible, RuleSet, TensorSpec, WeightConverter, save_plan
from weightloom.engine.mapping.index_map import IndexMap
from weightloom.engine.mapping.renaming import Renaming, WeightRenaming
from weightloom.engine.planning.resolve import resolve
from weightloom.rules import registry

# Names that the reference implementation sends elsewhere, by what is in them, and why ours is right.
DIFFERENT = {
    "deepseek_v4": ("", "it puts the level of the base model on later, by guess, and does not take it off again"),
    "dory": (r"7\.attn_alpha|6\.mlp_alpha", "it takes a scale of either kind from any layer"),
    "esm": (r"rotary_embeddings\.inv_freq", "it sends the buffers of all layers to one, of which the first wins"),
    "kimi_k25": (
        r"vision_tower\.(layers|patch_embed)|mm_projector\.pre_norm",
        "it renames the norms by their first names, ours by what the other renames made; it puts some on by guess",
    ),
}


def keys() -> list[str]:
    """The keys that have rules there and models to use them."""
    return [key for key in registered() if key not in DEAD]


def differences(key: str) -> Iterator[str]:
    """Say where a key's shipped rules and the reference implementation's differ on names, both ways."""
    rules = registry(key)
    if rules is None:
        yield "no rules"
        return
    transforms = mapping()[key]
    names = [name for each in transforms for pattern in each.source_patterns for name in names_for(pattern)]
    names += [name for rule in rules for name in _own_names(rule)]
    names = sorted(set(names))
    yield from _forwards(key, names, rules, transforms)
    yield from _silent(names, rules)
    yield from _backwards(key, names, rules, transforms)


def _own_names(rule: object) -> list[str]:
    """Names for what ours has more or finer patterns for; a target that says where it holds leads them."""
    return [name for pattern in getattr(rule, "sources", ()) for name in names_for(pattern.compiled.pattern)]


def _is_other(key: str, name: str) -> bool:
    part, _ = DIFFERENT.get(key, (None, ""))
    return part is not None and re.search(part, name) is not None


def _forwards(key: str, names: list[str], rules: RuleSet, transforms: list[Any]) -> Iterator[str]:
    mine, its = ours(names, _unquantized(rules)), theirs(names, transforms)
    for name in names:
        if mine[name] != its[name] and not _is_other(key, name):
            yield f"{name}: ours {mine[name]}, theirs {its[name]}"


def _unquantized(rules: RuleSet) -> RuleSet:
    """Leave out what is for quantized checkpoints alone: the reference implementation has it elsewhere."""
    return RuleSet([rule for rule in rules if "quantization_config" not in str(rule.when)], rules.base_model_prefix)


def _silent(names: list[str], rules: RuleSet) -> Iterator[str]:
    """A shipped rule that fires on no name."""
    fired: set[int] = set()
    for found in resolve(names, tuple(rules))[1]:
        fired.update(found.acted, (claim.converter for claim in found.claims))
    for number, rule in enumerate(rules):
        if isinstance(rule, Renaming) and number not in fired:
            yield f"never fires: {rule.title()}"


def _backwards(key: str, names: list[str], rules: RuleSet, transforms: list[Any]) -> Iterator[str]:
    """What ours writes for a parameter, theirs leads to it again."""
    renames = [r for r in rules if isinstance(r, Renaming) and not isinstance(r, WeightConverter)]
    simple = RuleSet(renames)
    targets = sorted(set(ours(names, simple).values()))
    for target in targets:
        written = _written(simple, target)
        if written is None or _is_other(key, target):
            continue
        (back,) = theirs([written], _renames(transforms)).values()
        if back != target:
            yield f"{target} is written as {written}, which theirs leads to {back}"


def _renames(transforms: Iterable[Any]) -> list[Any]:
    return [each for each in transforms if not hasattr(each, "operations")]


def _written(rules: RuleSet, parameter: str) -> str | None:
    """The name for a parameter of a model that was never loaded; None where another parameter is in the way."""
    try:
        plan = save_plan(rules, {parameter: TensorSpec("F32", (1,))})
    except NotInvertible:
        return None
    (name,) = plan.sources
    return name


def unwritten(key: str) -> Iterator[str]:
    """Say which renames, of those that are to be written, no parameter is written by.

    One whose target says where it holds is left to the models: it needs a whole name.
    """
    rules = registry(key) or RuleSet(())
    for rule in rules:
        if isinstance(rule, WeightRenaming | IndexMap) and _is_written(rule):
            alone = RuleSet([rule])
            made = {after for name in _own_names(rule) if (after := rule.rewrite(name)) is not None}
            if not any(_written(alone, name) not in (None, name) for name in made):
                yield f"is never written: {rule.title()}"


def _is_written(rule: Renaming) -> bool:
    return rule.always and not any("(?" in target for target in rule.target_patterns)
