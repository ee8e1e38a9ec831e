"""What mlx-lm quantized goes to the published names and back, packed words and all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.all_keys.jobs import Job
from tests.oracle.mlx_layouts.families import FAMILIES
from tests.oracle.mlx_layouts.trial import Trial
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

GROUP, BITS = 32, 4
JOBS = [
    Job("qwen3_next"),
    Job("granitemoehybrid", "dense"),
    Job("nemotron_h"),
    Job("falcon_h1", "factors"),
    Job("gemma4_text", "experts"),
    Job("llava"),
]


def quantized(trial: Trial) -> Path:
    """The family's mlx form, quantized by mlx-lm wherever a row makes whole groups."""
    from mlx_lm.utils import quantize_model, save_model

    def takes(path: str, module: Any) -> bool:
        return hasattr(module, "to_quantized") and module.weight.shape[-1] % GROUP == 0

    config = json.loads((trial.mlx / "config.json").read_text())
    model, config = quantize_model(trial.loaded(trial.mlx), config, GROUP, BITS, quant_predicate=takes)
    place = trial.directory / "quantized"
    save_model(place, model)
    (place / "config.json").write_text(json.dumps(config))
    return place


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_quantized_weights_go_there_and_back(job: Job, tmp_path: Path) -> None:
    import mlx.core as mx

    source = quantized(Trial(FAMILIES[job], tmp_path))
    convert(source, Order(tmp_path / "hf", "hf"), Wish())
    convert(tmp_path / "hf", Order(tmp_path / "again", "mlx"), Wish())
    before, after = (mx.load(str(place / "model.safetensors")) for place in (source, tmp_path / "again"))
    assert isinstance(before, dict) and isinstance(after, dict)
    assert sorted(before) == sorted(after)
    assert sum(array.dtype == mx.uint32 for array in before.values()) > 5
    for name, array in before.items():
        exact = array.dtype == mx.uint32
        same = mx.array_equal(array, after[name]) if exact else mx.allclose(array, after[name], rtol=0, atol=1e-5)
        assert bool(same), name
