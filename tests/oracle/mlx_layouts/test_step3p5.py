"""step3p5, for which the reference implementation has no model with a head: held against mlx-lm alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from tests.golden.make import file_bytes
from tests.golden.reference import Tensor
from tests.oracle import peer
from tests.oracle.mlx_layouts import check
from tests.oracle.mlx_layouts.family import Family
from tests.oracle.mlx_layouts.trial import Trial

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

CONFIG = {
    "architectures": ["Step3p5ForCausalLM"],
    "model_type": "step3p5",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "vocab_size": 128,
    "num_attention_heads": 4,
    "num_attention_groups": 2,
    "head_dim": 8,
    "intermediate_size": 48,
    "rope_theta": 10000.0,
    "max_position_embeddings": 64,
    "sliding_window": 32,
    "layer_types": ["full_attention", "sliding_attention"],
    "attention_other_setting": {"num_attention_heads": 4, "num_attention_groups": 2},
    "moe_num_experts": 4,
    "moe_top_k": 2,
    "moe_intermediate_size": 24,
    "share_expert_dim": 24,
    "moe_layers_enum": "1",
    "tie_word_embeddings": False,
}
# mlx-lm's names, and those published.
NAMES = (
    (".mlp.switch_mlp.", ".moe."),
    (".mlp.gate.gate.", ".moe.gate."),
    (".mlp.gate.router_bias", ".moe.router_bias"),
    (".mlp.share_expert.", ".share_expert."),
)


@dataclass(frozen=True)
class Step3p5(Trial):
    """Random values under published names, for the module that mlx-lm has."""

    @cached_property
    def published(self) -> Path:
        from mlx.utils import tree_flatten
        from mlx_lm.models.step3p5 import Model, ModelArgs

        place, random = self.directory / "published", np.random.default_rng(0)
        place.mkdir()
        held = tree_flatten(Model(ModelArgs.from_dict(CONFIG)).parameters())
        shapes = {_published(name): array.shape for name, array in held}
        data = {name: random.normal(0, 0.5, shape).astype(np.float32).tobytes() for name, shape in shapes.items()}
        specs = {name: Tensor("F32", tuple(shape)) for name, shape in shapes.items()}
        (place / "model.safetensors").write_bytes(file_bytes(specs, data))
        (place / "config.json").write_text(json.dumps(CONFIG))
        return place


def _published(name: str) -> str:
    for theirs, published in NAMES:
        name = name.replace(theirs, published)
    return name


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Step3p5:
    return Step3p5(Family("step3p5"), tmp_path_factory.mktemp("step3p5"))


@pytest.mark.parametrize("step", [check._as_sanitized, check._logits, check._back], ids=lambda step: step.__name__)
def test_there_and_back(trial: Step3p5, step: check.Step) -> None:
    assert list(step(trial)) == []


def test_what_mlx_lm_saved_is_as_published_but_for_rounded_norms(trial: Step3p5) -> None:
    """It adds one to the norms' weights, which takes their last bits; nothing else is lost."""
    assert trial.from_theirs.tensors
    before, after = (check._tensors(place) for place in (trial.published, trial.directory / "from_theirs"))
    assert before.keys() == after.keys()
    for name in before:
        if "norm" in name:
            ours, theirs = (np.frombuffer(each[name][1], np.float32) for each in (after, before))
            assert np.abs(ours - theirs).max() < 1e-6
        else:
            assert before[name] == after[name]
    assert peer.config_of(trial.directory / "from_theirs") == CONFIG
