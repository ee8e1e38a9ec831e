"""config.json as mlx-lm wants it: rotary settings beside the sizes, numbers, and the fields that rule data names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weightloom.rules import lint_rules
from weightloom.rules.parse import parse_rules
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.configs.config import Config
from weightloom.runtime.saving.mlx_config import config_in, with_fields


def written(config: dict[str, Any]) -> dict[str, Any]:
    raw = json.dumps(config).encode()
    choice = find_choice(Config(Path("config.json"), raw, config), Wish())
    assert choice is not None
    found: dict[str, Any] = json.loads(config_in("mlx", choice, raw), parse_constant=pytest.fail)
    return found


def test_kinds_of_layers_are_called_as_mlx_lm_calls_them() -> None:
    config = {"model_type": "granitemoehybrid", "layer_types": ["linear_attention", "full_attention", "mamba"]}
    assert written(config)["layer_types"] == ["mamba", "attention", "mamba"]


def test_infinity_is_a_number_of_strict_json() -> None:
    config = {"model_type": "jamba", "time_step_limit": [0.0, {"__float__": "Infinity"}], "other": {"__float__": 1}}
    assert written(config)["time_step_limit"] == [0.0, float("inf")]
    assert written(config)["other"] == {"__float__": 1}


def test_a_config_that_is_no_strict_json_is_written_as_readers_take_it() -> None:
    raw = b'\xef\xbb\xbf{"model_type": "llama", "eos_token_id": [1, 2,], }'
    choice = find_choice(Config(Path("config.json"), raw, {"model_type": "llama"}), Wish())
    assert choice is not None
    assert config_in("mlx", choice, raw) == b'{"model_type": "llama", "eos_token_id": [1, 2] }'


def test_a_field_that_is_there_stays() -> None:
    config = {"model_type": "falcon_h1", "hidden_size": 32, "num_attention_heads": 4}
    assert written(config)["head_dim"] == 8
    assert written(config | {"head_dim": 16})["head_dim"] == 16


def test_a_sub_config_that_is_not_there_is_not_made() -> None:
    config = {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": 8}
    assert written(config) == config
    inner = written(config | {"text_config": {}, "tie_word_embeddings": True})
    assert inner["text_config"] == {"tie_word_embeddings": True}


HEAD = "schema: 1\nfamily: mine\nlayouts:\n  other:\n    rules: []\n    config: "
WRONG = ["[a]", "{a: [b]}", "{a: {each: b}}", "{a: {each: b, as: c}}", "{a: {each: b, as: {c: [1]}}}", "{a: 'b +'}"]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_config_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + text + "\n")
    assert [finding.line for finding in lint_rules(file)] == [6]


def test_what_is_no_list_stays() -> None:
    (layout,) = parse_rules(f"{HEAD}{{a: {{each: b, as: {{c: d}}}}}}\n".encode(), "mine.yaml").layouts
    assert with_fields({}, dict(layout.config), {"b": "c"}) == {"a": "c"}
    assert with_fields({}, dict(layout.config), {"b": ["c", 1]}) == {"a": ["d", 1]}
