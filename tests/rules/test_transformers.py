"""The shipped rules send every name where Transformers' own rules send it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from tests.oracle.all_keys.build import build
from tests.oracle.all_keys.jobs import Job, mapping, registered
from tests.rules.scoped_table import WALKS, Walk
from tests.rules.test_every_rule_fires import forms
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.prefix import PrefixChange
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.mapping.scope import ModuleNode, scoped_rules
from weightloom.engine.planning.resolve import Claim, resolve
from weightloom.rules import registry
from weightloom.rules.linting.examples import example

pytestmark = [pytest.mark.oracle, pytest.mark.sample]

# Ours are finer: families that Transformers needs no renames for have drops and ties here.
BEFORE = ["", "model.", "model.layers.3.", "language_model.model.layers.11.", "a.model.language_model.layers.0."]
AFTER = ["", ".weight", ".bias", ".layers.0.w"]
# Only behind a pattern that ends in a word: where Transformers writes a bare dot, it takes `x_` for `x.`.
AFTER_A_WORD = ["_scale_inv", "2.weight"]
REAL = [
    "model.embed_tokens.weight",
    "lm_head.weight",
    "model.layers.0.mlp.gate.weight",
    "model.layers.12.mlp.experts.10.gate_proj.weight",
    "model.layers.12.mlp.experts.gate_up_proj",
    "model.layers.12.mlp.shared_expert.gate_proj.weight",
    "model.layers.1.block_sparse_moe.experts.7.w1.weight",
    "bert.encoder.layer.0.output.LayerNorm.gamma",
    "decoder.blocks.0.weight_g",
]


def ours(names: Iterable[str], rules: RuleSet) -> dict[str, str]:
    """Give where names go: through the renames, then the first target of what converter claims them."""
    found = {}
    for each in resolve(list(names), tuple(rules))[1]:
        found[each.name] = _target(each.claims[0], rules) if each.claims else each.renamed
    return found


def _target(claim: Claim, rules: RuleSet) -> str:
    rule = rules[claim.converter]
    assert isinstance(rule, WeightConverter)
    made = rule.templates[0].render(dict(claim.captures), claim.paired)
    return f"{claim.taken}{claim.before}{made}{claim.after}"


def theirs(names: Iterable[str], transforms: list[Any]) -> dict[str, str]:
    """The same by Transformers."""
    from transformers import core_model_loading as loading

    converters = [each for each in transforms if isinstance(each, loading.WeightConverter)]
    renamings = [each for each in transforms if not isinstance(each, loading.WeightConverter)]
    return {name: loading.rename_source_key(name, renamings, converters)[0] for name in names}


def names_for(rules: Iterable[Rule]) -> list[str]:
    """Names that exercise every rule: what each source matches and each rename writes, among other text."""
    cores: list[str] = []
    for rule in rules:
        if isinstance(rule, Renaming):
            found = [text for source in rule.sources if (text := example(source)) is not None]
            cores += [*found, *(after for text in found if (after := rule.rewrite(text)) is not None)]
    built = {before + core.lstrip(".") + after for before, core, after in product(BEFORE, cores, AFTER)}
    words = [core.lstrip(".") for core in cores if not core.endswith(".")]
    built |= {before + core + after for before, core, after in product(BEFORE, words, AFTER_A_WORD)}
    return sorted({name.replace("..", ".") for name in built} | set(REAL))


# Adapters are no models; the others have rules here for names that Transformers settles by a class or a base prefix.
_ELSEWHERE = {"MlxLmAdapter", "PeftModel", "Step3p5ForCausalLM", "gpt2", "gpt_neox"}
# Transformers has neither class nor rules for these.
_LACKING = {"bailing_moe", "internlm2", "kimi_k2", "nemotron-nas", "plamo2", "Plamo2ForCausalLM"}
_ALONE = sorted({*registry.identifiers()} - {*registered()} - _ELSEWHERE - _LACKING | {"llama", "mixtral"})


@pytest.mark.parametrize("identifier", _ALONE)
def test_an_identifier_sends_names_where_transformers_does(identifier: str) -> None:
    """Those that Transformers has no rules for, and two; the others are in the comparison over all keys."""
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    transforms = get_checkpoint_conversion_mapping(identifier) or []
    found = registry(identifier)
    assert found is not None
    rules = RuleSet(rule for rule in found if rule.applies({}, {}))
    names = names_for([*rules, *(registry("mixtral") or ())])
    assert ours(names, rules) == theirs(names, transforms)


PREFIXED = [
    key
    for key in registered()
    if key in registry.identifiers() and any(isinstance(rule, PrefixChange) for rule in registry(key) or ())
]


@pytest.mark.parametrize("key", PREFIXED)
def test_both_forms_of_a_prefix_go_where_transformers_sends_them(key: str) -> None:
    rules = registry(key)
    assert rules is not None
    names = [
        f"{start}{rest}.weight"
        for rule in rules
        if isinstance(rule, PrefixChange)
        for start in forms(rule)
        for rest in ("x", "layers.0.norm")
    ]
    assert ours(names, rules) == theirs(names, mapping()[key])


def test_every_identifier_that_shares_these_rules_is_there() -> None:
    from transformers.conversion_mapping import _MODEL_TO_CONVERSION_PATTERN as SHARED

    bases = {"mixtral", "qwen2_moe", "llava", "LlavaModel", "DetrModel"}
    wanted = {name for name, base in SHARED.items() if base in bases} | bases
    assert wanted <= set(registry.identifiers())


SMALL = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
TEXT = SMALL | {"model_type": "llama", "num_key_value_heads": 2, "vocab_size": 16}
VISION = SMALL | {"model_type": "clip_vision_model", "image_size": 4, "patch_size": 2, "projection_dim": 8}
DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone_config": {"model_type": "resnet", "hidden_sizes": [4, 4, 4, 4], "depths": [1] * 4, "embedding_size": 4},
    **{"d_model": 8, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2},
    **{"decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "num_queries": 3},
}
MODELS = {
    "LlavaForConditionalGeneration": {"text_config": TEXT, "vision_config": VISION},
    "LlavaModel": {"text_config": TEXT, "vision_config": VISION},
    "DetrForObjectDetection": DETR,
    "DetrModel": DETR,
    "ConditionalDetrForObjectDetection": DETR,
    "MixtralForCausalLM": SMALL | {"num_local_experts": 2, "vocab_size": 16, "num_key_value_heads": 2},
    "BertForMaskedLM": SMALL | {"vocab_size": 16},
}


@pytest.mark.parametrize("class_name", MODELS)
def test_a_model_s_rules_are_scoped_as_in_transformers(class_name: str) -> None:
    """A checkpoint with the base prefix and one without, their names also in the forms that only old files have."""
    import torch
    import transformers
    from transformers.conversion_mapping import get_model_conversion_mapping

    model_class = getattr(transformers, class_name)
    with torch.device("meta"):
        model = model_class(model_class.config_class(**MODELS[class_name]))
    nodes = [
        ModuleNode(path, type(module).__name__, module.config.model_type)
        for path, module in model.named_modules()
        if isinstance(module, transformers.PreTrainedModel)
    ]
    rules = scoped_rules(nodes, registry, model.base_model_prefix)
    transforms = get_model_conversion_mapping(model)
    plain = [name for name in model.state_dict() if "vision_tower" not in name and "backbone.model" not in name]
    forms = {form for name in plain for form in _forms(name, model.base_model_prefix)}
    assert len(forms) > 40
    with_base = {name for name in forms if name.startswith(f"{model.base_model_prefix}.")}
    for checkpoint in (with_base | set(plain), forms - with_base):
        assert ours(checkpoint, rules) == theirs(checkpoint, transforms)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.key)
def test_a_tree_of_the_table_is_that_of_the_model(walk: Walk) -> None:
    """And the parts for which Transformers has rules are those for which ours rename or convert."""
    from transformers import PreTrainedModel
    from transformers.conversion_mapping import get_model_conversion_mapping

    model = build(Job(walk.key)).model
    modules = [(path, m) for path, m in model.named_modules() if isinstance(m, PreTrainedModel)]
    assert tuple((path, type(m).__name__, m.config.model_type) for path, m in modules) == walk.nodes
    assert model.base_model_prefix == walk.base
    rules = scoped_rules([ModuleNode(*node) for node in walk.nodes], registry, walk.base)
    mine = {rule.scope.prefix if rule.scope else None for rule in rules if isinstance(rule, Renaming)}
    assert mine == {transform.scope_prefix for transform in get_model_conversion_mapping(model)}


def _forms(name: str, base: str) -> set[str]:
    """A parameter's name, with and without the base prefix, and as older files may spell it."""
    without = name.removeprefix(f"{base}.")
    spelt = {without, without.replace("language_model.", "language_model.model."), without.replace(".mlp.fc", ".fc")}
    spelt |= {each.replace("o_proj", "out_proj") for each in spelt} | {f"language_model.{name}"}
    return {name, *spelt, *(f"{base}.{each}" for each in spelt)}
