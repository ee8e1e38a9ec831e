"""Architectures made of a decoder's: the same layers and config, to embed texts or to score them in its place.

The parameters are the decoder's without its head, named as in the generating model; checkpoints of the bare model,
whose names lack the prefix, fit too. Tokens see those before them; where the config or the class says so, all, and in
layers that slide as many to either side as the window is, as Transformers has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from weightloom.engine import Drop, RuleSet
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.labels import label_names
from weightloom.plugins.judging.evidence import Evidence
from weightloom.plugins.judging.kind import BOTH_WAYS_FLAGS, sees_both_ways
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.embedder import DecoderClassifier, Embedder, Sight, both_ways
from weightloom.plugins.layers.masks import present_mask

_HEAD = RuleSet([Drop([r"^lm_head\.", r"^score\."], why="a head, which an embedder does not use")])
_SCORE = "score.weight"


@dataclass(frozen=True)
class Config:
    """A decoder's config, what its tokens see, and the labels that a classifier has, in the order of the scores."""

    decoder: Any
    sight: Sight
    labels: tuple[str, ...] = ()


def sight_of(content: Mapping[str, Any]) -> Sight:
    """Give what tokens see by config.json's content; raises ConfigError for a flag that is none."""
    return both_ways if sees_both_ways(content) else present_mask


def embedder(
    of: Architecture, *class_names: str, sight: Callable[[Mapping[str, Any]], Sight] = sight_of
) -> Architecture:
    """Give the architecture that embeds with a decoder; `sight` reads what its tokens see."""

    def read_config(content: Mapping[str, Any]) -> Config:
        return Config(of.read_config(_without_flags(content)), sight(content))

    return replace(
        of,
        name=f"{of.name}_embedder",
        class_names=class_names,
        task="embed",
        verified=f"Transformers 5.24 {', '.join(class_names)}",
        by_request=(),
        read_config=read_config,
        build=lambda config: Embedder(_decoder(of, config), config.sight),
        rules=RuleSet([*of.rules, *_HEAD]),
        sharding={},
    )


def classifier(of: Architecture, *class_names: str) -> Architecture:
    """Give the architecture that scores texts by a decoder's last token, for checkpoints that have such a head."""

    def read_config(content: Mapping[str, Any]) -> Config:
        return Config(of.read_config(_without_flags(content)), sight_of(content), label_names(content))

    made = replace(
        of,
        name=f"{of.name}_classifier",
        class_names=class_names,
        task="rerank",
        verified=f"Transformers 5.24 {', '.join(class_names)}",
        by_request=(),
        read_config=read_config,
        build=lambda config: DecoderClassifier(_decoder(of, config), config.sight, len(config.labels)),
        sharding={},
    )
    return replace(made, refusal=lambda evidence: made.why_not(evidence) or _no_score(made, evidence))


def _without_flags(content: Mapping[str, Any]) -> dict[str, Any]:
    """Give config.json's content without what the decoder itself would refuse: what tokens see is settled here."""
    return {name: value for name, value in content.items() if name not in BOTH_WAYS_FLAGS}


def _decoder(of: Architecture, config: Config) -> Decoder:
    return cast("CausalLM", of.build(config.decoder)).decoder


def _no_score(made: Architecture, evidence: Evidence) -> str | None:
    fine = evidence.class_name in made.class_names or _SCORE in evidence.names
    return None if fine else f"it scores by {_SCORE}, and there is none"
