"""Ops on some of a rule's patterns, by the layout that has latent attention's product cut by heads and half turned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.engine.layouts import check, counted, plan_specs
from weightloom.engine import Concatenate, Flatten, PlanError, RuleError, TensorSpec, Transpose, WeightConverter

HEADS, KEYS, VALUES, RANK = 4, 3, 5, 6
CONFIG = {"num_attention_heads": HEADS, "qk_nope_head_dim": KEYS, "v_head_dim": VALUES}


def absorbed(only: list[str]) -> WeightConverter:
    return WeightConverter(
        [r"\.embed_q\.weight", r"\.unembed_out\.weight"],
        ".kv_b_proj.weight",
        [
            Transpose(1, 2, only=only),
            Concatenate(1, sizes=["qk_nope_head_dim", "v_head_dim"]),
            Flatten(0, 1, ["num_attention_heads", -1]),
        ],
    )


@pytest.mark.parametrize("closed", [True, False])
def test_two_products_by_heads_are_the_rows_of_one_matrix(tmp_path: Path, closed: bool) -> None:
    whole = counted(HEADS * (KEYS + VALUES), RANK)
    heads = whole.reshape(HEADS, KEYS + VALUES, RANK)
    keys, values = heads[:, :KEYS].swapaxes(1, 2), heads[:, KEYS:]
    parts = {"a.embed_q.weight": np.ascontiguousarray(keys), "a.unembed_out.weight": np.ascontiguousarray(values)}
    check(parts, [absorbed(["embed_q"])], {"a.kv_b_proj.weight": whole}, tmp_path, CONFIG, closed=closed)


def test_a_pattern_that_the_rule_has_not_is_an_error() -> None:
    specs = {
        "a.embed_q.weight": TensorSpec("BF16", (HEADS, RANK, KEYS)),
        "a.unembed_out.weight": TensorSpec("BF16", (HEADS, VALUES, RANK)),
    }
    with pytest.raises(PlanError, match=r"Transpose: only embed_k, of .*embed_q.*unembed_out"):
        plan_specs(specs, [absorbed(["embed_k"])], config=CONFIG).check()


@pytest.mark.parametrize("only", [[], "embed_q", [1], [""]])
def test_texts_are_a_list(only: list[str]) -> None:
    with pytest.raises(RuleError, match="only is"):
        Transpose(1, 2, only=only)
