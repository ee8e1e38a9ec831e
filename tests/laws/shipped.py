"""Every rule set that ships, with tensors that all its rules on names and values take part in.

Names come from the rules' own patterns. Shapes are found by trying: each converter on its own takes the first of some
forms that its ops fit, and then all go into one checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from weightloom.engine import Checkpoint, Chunk, ConversionOp, Plan, RuleSet, Split, TensorSpec, Transpose, build_plan
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.patterns import SourcePattern
from weightloom.engine.mapping.renaming import Renaming
from weightloom.rules import load_rules, registry
from weightloom.rules.linting.examples import example

Specs = dict[str, TensorSpec]

SHIPPED = [(family, layout) for family in registry.families() for layout in registry.layouts(family)]
# 24 rows divide by the counts that published layouts have; 2 heads of 12. A list has 4 tensors, for some is halved.
_LISTED = 4
_SIZES = {
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "hidden_size": 24,
    "head_dim": 12,
    "qk_nope_head_dim": 12,
    "v_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 12,
    "linear_num_value_heads": 2,
    "linear_value_head_dim": 12,
    "vocab_size": 24,
    "additional_vocab_size": 24,
    "unpadded_vocab_size": 20,
    "moe_intermediate_size": 12,
    "intermediate_size": 24,
    "num_hidden_layers": 8,
    "num_nextn_predict_layers": 1,
    "num_kv_shared_layers": 1,
    "layer_group_size": 2,
    "mamba_d_ssm": 6,
    "mamba_n_groups": 2,
    "mamba_d_state": 2,
    "mamba_n_heads": 4,
}
_FACTORS = {
    f"{name}_multiplier": 0.5
    for name in ("embedding", "lm_head", "attention_in", "attention_out", "key", "ssm_in", "ssm_out")
}
_BOTH = {**_SIZES, **_FACTORS, "mlp_multipliers": [0.5, 0.25], "ssm_multipliers": [0.5] * 5}
CONFIG = {**_BOTH, "text_config": _BOTH, "vision_config": _BOTH}


def forms(wide: int) -> list[tuple[TensorSpec, ...]]:
    """Specs to try for a converter's source patterns, one for all or one each; `wide` times 24 columns."""
    columns = 24 * wide
    matrix, tall, taller = (TensorSpec("F32", (rows, columns)) for rows in (24, 72, 96))
    stack, words = TensorSpec("F32", (24, 2 * columns, 24)), TensorSpec("U32", (2, 24, columns))
    convolutions = (TensorSpec("F32", shape) for shape in ((24, 4 * wide, 1), (24, 2, 2, 2 * wide)))
    vectors = (TensorSpec("F32", (size,)) for size in (24, 72))
    heads = (TensorSpec("F32", (2, 12 * wide, 12)), TensorSpec("F32", (2, 12, 12 * wide)))
    codes, scales = TensorSpec("U8", (2, 24, 16 * wide)), TensorSpec("F8_E4M3", (2, 24, 2 * wide))
    packed = (codes, scales, TensorSpec("F32", (2,)), TensorSpec("F32", (1,)))
    singles = (stack, *convolutions, tall, taller, words, *vectors)
    return [(matrix,), heads, *((each,) for each in singles), packed]


def shipped(family: str, layout: str) -> RuleSet:
    """A rule set without its conditions; of rules for the same names under other conditions, the first."""
    seen: dict[object, object] = {}
    rules = load_rules(family, layout).replace_all(when=None)
    first = [rule for rule in rules if seen.setdefault(getattr(rule, "source_patterns", rule), rule) is rule]
    return RuleSet(first, rules.base_model_prefix)


def names_of(rule: Renaming) -> dict[str, int]:
    """A name for each source pattern of a rule, several for one that collects; each with its pattern's number."""
    names: dict[str, int] = {}
    for index, source in enumerate(rule.sources):
        shown = example(source)
        name = next((each for each in (f"layers.0.{shown}", shown) if each and source.search(each)), None)
        if name is None or name == "__metadata__":
            continue
        collects = isinstance(rule, WeightConverter) and rule.collects(index)
        names |= dict.fromkeys(_numbered(rule, name, source) if collects else [name], index)
    return names


def _numbered(rule: Renaming, name: str, source: SourcePattern) -> Iterator[str]:
    """The same name with the first numbers in the place of the star that collects."""
    assert isinstance(rule, WeightConverter)
    found = source.compiled.search(name)
    assert found is not None
    start, end = found.span(source.stars[rule.paired])
    yield from (f"{name[:start]}{number}{name[end:]}" for number in range(_LISTED))


@dataclass(frozen=True)
class Fitting:
    """Tensors that a rule set takes, and the parameters that they make."""

    rules: RuleSet
    tensors: Specs
    params: Mapping[str, TensorSpec]

    def plan(self, checkpoint: Checkpoint) -> Plan:
        """Plan a checkpoint that has these tensors."""
        return build_plan(checkpoint, self.rules, self.params, config=CONFIG)

    @property
    def used(self) -> set[object]:
        """The rules of the plan's groups."""
        return {group.rule for group in self.plan(Checkpoint.from_specs(self.tensors)).groups}


def fittings(family: str, layout: str) -> list[Fitting]:
    """Give tensors for all rules of a set together, and for each that another condition's rules are in the way of."""
    first = fitting(shipped(family, layout))
    rules = load_rules(family, layout)
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    idle = [rule for rule in converters if rule.replace(when=None) not in first.used]
    return [first, *(fitting(_where(rule, rules)) for rule in idle)]


def _where(rule: WeightConverter, rules: RuleSet) -> RuleSet:
    """A converter alone, with the other kinds of rules that act where it does."""
    others = (each for each in rules if not isinstance(each, WeightConverter) and each.when in (None, rule.when))
    return RuleSet((*others, rule), rules.base_model_prefix).replace_all(when=None)


def fitting(rules: RuleSet, wide: int = 1) -> Fitting:
    """Give tensors for all of the rules that go together."""
    guide = RuleSet(rules.map_ops(_with_sizes), rules.base_model_prefix)
    tensors: Specs = {}
    for rule in rules:
        if isinstance(rule, Renaming):
            found = _for_one(rule, guide, wide)
            tensors |= {name: spec for name, spec in found.items() if name not in tensors}
    return _without_clashes(rules, guide, tensors)


def _without_clashes(rules: RuleSet, guide: RuleSet, tensors: Specs) -> Fitting:
    plan = _open(tensors, guide)
    apart = {kept.name for kept in plan.kept if kept.reason != "dropped"}
    if plan.ok() or not apart:
        return Fitting(rules, tensors, plan.params)
    return _without_clashes(rules, guide, {name: spec for name, spec in tensors.items() if name not in apart})


def _for_one(rule: Renaming, guide: RuleSet, wide: int) -> Specs:
    names = names_of(rule)
    if not isinstance(rule, WeightConverter):
        return dict.fromkeys(names, TensorSpec("F32", (24, 24 * wide)))
    for form in forms(wide):
        if len(form) not in (1, len(rule.sources)):
            continue
        tensors = {name: form[min(index, len(form) - 1)] for name, index in names.items()}
        plan = _open(tensors, guide)
        if plan.ok() and any(_alike(group.rule, rule) for group in plan.groups):
            return tensors
    return {}


def _alike(rule: object, other: WeightConverter) -> bool:
    """The same rule, whatever became of its ops."""
    return isinstance(rule, WeightConverter) and rule.source_patterns == other.source_patterns


def _open(tensors: Specs, rules: RuleSet) -> Plan:
    return build_plan(Checkpoint.from_specs(tensors), rules, config=CONFIG)


def _with_sizes(op: ConversionOp) -> ConversionOp:
    """Where only the parameters tell: sizes are equal ones here, and what may be turned is."""
    if isinstance(op, Split) and op.sizes is None:
        return Chunk(op.dim)
    return replace(op, check_dims=False) if isinstance(op, Transpose) and op.check_dims else op


def chains() -> list[WeightConverter]:
    """A converter that ships for every chain of kinds of ops."""
    found: dict[object, WeightConverter] = {}
    for family, layout in SHIPPED:
        for rule in shipped(family, layout):
            if isinstance(rule, WeightConverter):
                kinds = tuple(type(op) for op in rule.operations)
                found.setdefault((kinds, len(rule.sources) > 1, len(rule.templates) > 1), rule)
    return list(found.values())
