"""Architecture: all that weightloom needs to know of a model family, offered by a plugin as one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from weightloom.engine import ModuleNode, RuleSet
from weightloom.engine.errors import PluginError
from weightloom.engine.mapping.rule import Place
from weightloom.plugins.configs.repair import Repaired, repaired_numbers
from weightloom.plugins.judging.evidence import Evidence
from weightloom.plugins.judging.spelling import only_spelling

if TYPE_CHECKING:
    import mlx.nn as nn

OURS = "weightloom"
Task = Literal["generate", "embed", "rerank", "detect", "audio"]


@dataclass(frozen=True, slots=True)
class SubModel:
    """A sub-model below the root: its module path, class name, and the config field that has its own config.

    `class_name` and `path` are those of the canonical model (Transformers 5); the rule lookup walks them.
    """

    path: str
    class_name: str
    config_field: str | None = None


@dataclass(frozen=True)
class Architecture:
    """A model family: what selects it, how its config is read, its module, its rules, what it accepts.

    `read_config` turns config.json's content into the family's own config value, or raises ConfigError naming
    the field; `fields`, if given, is the dataclass of the fields that it reads, by which numbers in quotes and nulls
    for numbers are repaired first; `repair_config`, if given, then repairs what only the family knows of, each repair
    named for the report. `adapt`, if given, settles on the checkpoint's (canonical) tensor names what the
    config does not say (whether there is a pooler, say). `build` makes the module from it; its parameters' names are
    the canonical names, or `rules` lead from there to them. `adapters` is the kinds of adapters it accepts, or the
    text that says why it accepts none. `sharding` gives, for tensor parallelism, patterns on parameter names and how
    each is cut. `keeps_bf16` says that values go beyond what float16 can hold, so that what is bfloat16 is never made
    float16. `towers` are the paths of the modules that a prompt of text alone never runs: by default their parameters
    are read when they are first used. `rewrite_rules`, if given, takes all rules that a checkpoint in a layout is read
    or written by, its own among them, and its config, and gives those to use in their place (`RuleSet.map_ops` and
    `rule.replace` make such). Rules that ship for a class or model type are for the architecture that ships: one of
    another package has its own, those that a package registers, and, where it says that it `inherits_rules`, those too.
    `verified` says in a few words what its answers were compared with; "" where there is nothing to say.

    `refusal`, if given, looks at the evidence of a checkpoint of one of its model types, and gives the reason why it is
    another architecture's, or None. Without it, checkpoints for another task than `task` are left to others (`rerank`
    takes only those that say so), and so are, where no `vision_config` is among its sub-models, those with a vision
    tower. `by_request` are the tasks that it does as well where they are asked for by name.

    What a module is called with: `generate`, see `CausalLM`; `embed`, tokens and mask (B, L) -> hidden states (B, L,
    hidden); `rerank`, tokens, mask and token types (B, L) -> logits (B, labels).
    """

    name: str
    model_types: tuple[str, ...]
    task: Task
    read_config: Callable[[Mapping[str, Any]], Any]
    build: Callable[[Any], nn.Module]
    adapters: tuple[str, ...] | str
    class_names: tuple[str, ...] = ()
    sub_models: tuple[SubModel, ...] = ()
    base_model_prefix: str = "model"
    rules: RuleSet = field(default_factory=RuleSet)
    adapt: Callable[[Any, Collection[str]], Any] | None = None
    sharding: Mapping[str, str] = field(default_factory=dict, hash=False)
    fields: type[Any] | None = None
    refusal: Callable[[Evidence], str | None] | None = None
    keeps_bf16: bool = False
    towers: tuple[str, ...] = ()
    by_request: tuple[Task, ...] = ()
    rewrite_rules: Callable[[RuleSet, Mapping[str, Any]], RuleSet] | None = None
    inherits_rules: bool = False
    repair_config: Callable[[Mapping[str, Any]], Repaired] | None = None
    verified: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.model_types:
            raise PluginError(
                f"architecture {self.name!r} with model types {self.model_types!r}",
                expected="a name, and one model type at least",
                field="model_types",
            )
        if not self.adapters:
            raise PluginError(
                f"architecture {self.name!r} does not say which adapters it accepts",
                expected="a tuple of kinds, or the text of a refusal",
                field="adapters",
            )

    def from_source(self, source: str) -> Architecture:
        """Give the same architecture with the name of the distribution that offers it, which its rules say too."""
        rules = (rule if rule.place else rule.replace(place=Place(f"{source}, in Python")) for rule in self.rules)
        return replace(self, source=source, rules=RuleSet(rules, self.rules.base_model_prefix))

    def repaired(self, content: Mapping[str, Any]) -> Repaired:
        """Give config.json's content as the family reads it: numbers by `fields`, then by `repair_config`."""
        found = Repaired(content) if self.fields is None else repaired_numbers(self.fields, content)
        if self.repair_config is None:
            return found
        more = self.repair_config(found.content)
        return Repaired(more.content, (*found.repairs, *more.repairs))

    def why_not(self, evidence: Evidence) -> str | None:
        """Give the reason why a checkpoint of one of its model types is not for it; None where it is."""
        if self.refusal is not None:
            return self.refusal(evidence)
        sees = any(sub.config_field == "vision_config" for sub in self.sub_models)
        blind = None if sees or not evidence.vision.present else f"it takes text alone, and {evidence.vision.why}"
        return blind or self._other_task(evidence)

    def _other_task(self, evidence: Evidence) -> str | None:
        kind = evidence.kind
        if kind.task is None:
            return "it scores pairs, and nothing says that this does" if self.task == "rerank" else None
        likely = kind.force == "likely" and evidence.class_name in self.class_names
        asked = kind.force == "asked" and kind.task in self.by_request
        return None if likely or asked or kind.task == self.task else f"it is for {self.task}, and {kind}"

    def nodes(self, config: Mapping[str, Any]) -> tuple[ModuleNode, ...]:
        """Give the canonical model tree for a config: the root class that it names, and the sub-models."""
        listed = config.get("architectures")
        classes = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        root = next((name for name in classes if name in self.class_names), None)
        root = root or next(iter(self.class_names), self.name)
        said = only_spelling(_model_type(config) or "", self.model_types)
        native = self.inherits_rules or self.source in ("", OURS)
        nodes = [ModuleNode("", root, said or self.model_types[0], native)]
        for sub in self.sub_models:
            own = config.get(sub.config_field) if sub.config_field else config
            nodes.append(ModuleNode(sub.path, sub.class_name, _model_type(own if isinstance(own, Mapping) else {})))
        return tuple(nodes)


def _model_type(config: Mapping[str, Any]) -> str | None:
    found = config.get("model_type")
    return found if isinstance(found, str) else None
