"""A real trained GGUF: the ids and logits that Transformers gives for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import smollm2
from weightloom.engine.gguf import open_gguf, read_gguf
from weightloom.runtime.gguf.config import gguf_config
from weightloom.runtime.gguf.tokenizer import gguf_tokenizer

pytestmark = pytest.mark.real

CASES = json.loads((Path(__file__).parents[1] / "smollm2_ref.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest) -> Path:
    return smollm2.fetch(request.config.cache.mkdir("smollm2"))


def test_ids_and_texts_are_those_of_the_reference(model: Path) -> None:
    tokenizer = gguf_tokenizer(read_gguf(model))
    for case in CASES:
        assert tokenizer.encode(case["prompt"]) == case["input_ids"]
        assert tokenizer.decode(case["greedy_ids"], skip_special_tokens=False) == case["greedy_text"]


def test_logits_and_greedy_ids_are_those_of_the_reference(model: Path) -> None:
    import mlx.core as mx

    with mx.stream(mx.cpu):
        decoder = loaded(model)
        for case in CASES:
            cache = decoder.make_cache()
            logits = decoder(mx.array([case["input_ids"]]), cache=cache)[0, -1]
            differences = [abs(logits[token].item() - value) for token, value in pairs(case)]
            assert max(differences) <= 0.05
            found = []
            for _ in range(8):
                found.append(int(mx.argmax(logits).item()))
                logits = decoder(mx.array([found[-1:]]), cache=cache)[0, -1]
            assert found == case["greedy_ids"][:8]


def pairs(case: dict[str, Any]) -> list[tuple[int, float]]:
    return list(zip(case["top5_ids"], case["top5_logits"], strict=True))


def loaded(path: Path) -> Any:
    """Put the weights in a module by the layout's rules, scales widened to float32, which is exact."""
    from weightloom.engine import build_plan
    from weightloom.engine.planning.cast import with_dtype
    from weightloom.plugins import PluginManager
    from weightloom.plugins.modules.binding import bind, param_specs
    from weightloom.plugins.modules.quantized import Quantization, quantize
    from weightloom.rules import load_rules

    checkpoint = open_gguf(path)
    config = gguf_config(read_gguf(path), checkpoint)
    architecture = PluginManager().architecture(config["model_type"])
    module = architecture.build(architecture.read_config(config))
    rules = load_rules(config["model_type"], layout="gguf")
    names = build_plan(checkpoint, rules, config=config).params
    settings = config["quantization"]
    paths = [name.removesuffix(".scales") for name in names if name.endswith(".scales")]
    bits = {path: settings.get(path, settings)["bits"] for path in paths}
    quantize(module, {path: Quantization(count, settings["group_size"]) for path, count in bits.items()})
    plan = build_plan(checkpoint, rules, param_specs(module), config=config)
    wide = with_dtype(plan, "F32", keep=lambda name: not name.endswith((".scales", ".biases")))
    bind(module, wide.load())
    return module
