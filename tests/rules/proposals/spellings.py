"""The same checkpoints under names that no shipped layout has: other vocabularies, and names that say nothing."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tests.rules.proposals.cases import Case
from weightloom.engine import RuleSet, WeightRenaming
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.planning.build import build_plan
from weightloom.runtime.choosing.rule_choice import led_on

Spell = Callable[[str], str]

# What parts of names are called elsewhere; parts that are not listed stay.
_OLDER = {
    "embed_tokens": "tok_embeddings",
    "self_attn": "attention",
    "q_proj": "wq",
    "k_proj": "wk",
    "v_proj": "wv",
    "o_proj": "wo",
    "mlp": "feed_forward",
    "gate_proj": "w1",
    "up_proj": "w3",
    "down_proj": "w2",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "lm_head": "output",
}
_TALL = {
    "model": "decoder",
    "layers": "block",
    "embed_tokens": "word_embeddings",
    "self_attn": "self_attention",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "o_proj": "dense",
    "mlp": "ffn",
    "gate_proj": "linear_gate",
    "up_proj": "fc_in",
    "down_proj": "fc_out",
    "input_layernorm": "norm1",
    "post_attention_layernorm": "norm2",
    "norm": "final_layernorm",
    "lm_head": "output_layer",
}
_STRANGE = {
    "layers": "stage",
    "self_attn": "mixer",
    "q_proj": "proj_a",
    "k_proj": "proj_b",
    "v_proj": "proj_c",
    "o_proj": "proj_d",
    "mlp": "mlp_block",
    "gate_proj": "lin_a",
    "up_proj": "lin_b",
    "down_proj": "lin_c",
    "input_layernorm": "scale_a",
    "post_attention_layernorm": "scale_b",
}


def _by_parts(table: dict[str, str]) -> Spell:
    return lambda name: ".".join(table.get(part, part) for part in name.split("."))


def _nameless(name: str) -> str:
    """Give every part but numbers and the last another name, which says nothing."""
    *parts, last = name.split(".")
    return ".".join([*(p if p.isdecimal() else f"m{zlib.crc32(p.encode()) % 9973}" for p in parts), last])


@dataclass(frozen=True)
class Spelling:
    """A way to spell names, and the share that is to be found: of names that say nothing, what shapes say alone."""

    name: str
    spell: Spell
    share: float


SPELLINGS = (
    Spelling("older", _by_parts(_OLDER), 0.7),
    Spelling("tall", _by_parts(_TALL), 0.85),
    Spelling("strange", _by_parts(_STRANGE), 0.4),
    Spelling("nameless", _nameless, 0.1),
)


def respelt(cases: Iterable[Case], spelling: Spelling) -> Iterator[Case]:
    """Give the published cases with canonical names spelt otherwise, where no two names become one."""
    for case in cases:
        names = {name: spelling.spell(name) for name in case.canonical}
        if case.layout != "hf" or len(set(names.values())) < len(names) or all(a == b for a, b in names.items()):
            continue
        tensors = {names[name]: spec for name, spec in case.canonical.items()}
        back = [WeightRenaming(f"^{re.escape(new)}$", old) for old, new in names.items() if old != new]
        rules = led_on(case.architecture, RuleSet(back, case.base), case.config)
        truth = build_plan(Checkpoint.from_specs(tensors), rules, case.params, config=case.config)
        assert truth.ok(), truth.report
        yield replace(case, layout=spelling.name, truth=truth)
