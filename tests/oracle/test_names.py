"""Names: the scoped rule list and each renamed name, against the reference implementation's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import peer
from tests.oracle.cases import each_case
from tests.oracle.conftest import Saved
from tests.oracle.models import model_of
from weightloom.engine import Rule, RuleSet, WeightConverter
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.resolve import Claim, resolve

if TYPE_CHECKING:
    from transformers import PreTrainedModel

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

_KINDS = {"WeightRenaming": "rename", "WeightConverter": "convert", "PrefixChange": "prefix"}

# The Swin tower of MaskFormer shares its model type with Swin, whose renames make names that this tower lacks: the
# reference takes each of them back when it finds no such parameter. They are left out of both lists, if there.
_NEVER_ACT = {"maskformer": "pixel_level_module.encoder"}

Outline = tuple[str, str | None, tuple[str, ...]]


def outline_of_transform(transform: Any) -> Outline:
    """Kind, scope (None at the root), ops."""
    ops = tuple(type(op).__name__ for op in getattr(transform, "operations", ()))
    return _KINDS[type(transform).__name__], transform.scope_prefix, ops


def outline_of_rule(rule: Rule) -> Outline:
    ops = tuple(type(op).__name__ for op in rule.operations) if isinstance(rule, WeightConverter) else ()
    return rule.kind, None if rule.scope is None else rule.scope.prefix, ops


@each_case
def test_the_scoped_list_has_the_same_kinds_scopes_and_order(name: str) -> None:
    model = model_of(name, "float32")
    theirs = [transform for transform in peer.mapping_of(model) if acts(name, transform.scope_prefix)]
    config = model.config.to_dict()
    ours = [outline_of_rule(rule) for rule in peer.shared_kinds(our_rules(name, model)) if rule.applies(config, {})]
    assert ours == [outline_of_transform(transform) for transform in theirs]


def acts(name: str, scope: str | None) -> bool:
    return scope is None or scope != _NEVER_ACT.get(name)


def our_rules(name: str, model: PreTrainedModel) -> RuleSet:
    rules = peer.rules_of(model)
    acting = [rule for rule in rules if acts(name, rule.scope.prefix if rule.scope else None)]
    return RuleSet(acting, rules.base_model_prefix)


@each_case
def test_each_name_is_renamed_alike(name: str, saved: Saved) -> None:
    model = model_of(name, "float32")
    files = peer.read_files(saved(name, "float32", False))
    written = sorted(name for tensors in files.values() for name in tensors)
    for names in forms(written, sorted(model.state_dict()), model.base_model_prefix):
        transforms = [transform for transform in peer.mapping_of(model) if acts(name, transform.scope_prefix)]
        ours, theirs = renamed(our_rules(name, model), names, model), renamed_by_the_reference(names, model, transforms)
        assert {n: (ours[n], theirs[n]) for n in names if theirs[n] not in ours[n]} == {}


def forms(written: list[str], converted: list[str], base: str) -> Iterable[list[str]]:
    """Names as a file has them, as the model has them, and both with the base prefix put on or taken off."""
    for names in (written, converted):
        yield names
        yield [f"{base}.{name}" for name in names]
        yield sorted({name.removeprefix(f"{base}.") for name in names})


def renamed(rules: RuleSet, names: list[str], model: PreTrainedModel) -> dict[str, set[str]]:
    """Where each name leads: to the names that a converter makes of it, else to its name after the renames."""
    fit = Fit(peer.param_specs(model), rules.base_model_prefix)
    resolver, found = resolve(names, rules.rules)
    answer: dict[str, set[str]] = {}
    for each in found:
        names_made = (
            converter_targets(resolver.rules[each.claims[0].converter], each.claims[0]) if each.claims else None
        )
        answer[each.name] = {fit.name(made) or made for made in names_made or [each.renamed]}
    return answer


def converter_targets(rule: Rule, claim: Claim) -> list[str]:
    assert isinstance(rule, WeightConverter)
    made = [template.render(dict(claim.captures), [*claim.paired, "0"]) for template in rule.templates]
    return [claim.taken + claim.before + text + claim.after for text in made]


def renamed_by_the_reference(names: list[str], model: PreTrainedModel, mapping: list[Any]) -> dict[str, str]:
    from transformers.core_model_loading import WeightConverter as Converter
    from transformers.core_model_loading import WeightRenaming as Renaming
    from transformers.core_model_loading import rename_source_key

    renamings = [transform for transform in mapping if isinstance(transform, Renaming)]
    converters = [transform for transform in mapping if isinstance(transform, Converter)]
    state = model.state_dict()
    return {name: rename_source_key(name, renamings, converters, model.base_model_prefix, state)[0] for name in names}
