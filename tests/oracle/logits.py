"""Logits of tiny random models: the reference implementation's, and ours on the checkpoint that it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from weightloom.engine import Checkpoint, build_plan, scoped_rules
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.modules.binding import bind, param_specs
from weightloom.rules import registry

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
LENGTH = 48
Array = np.ndarray[Any, Any]


def write_reference(class_name: str, config_name: str, folder: Path, length: int, **values: Any) -> tuple[Array, Array]:
    """Write a tiny random model in float32; give tokens (2, length) and the logits that it makes of them."""
    import torch
    import transformers

    config = getattr(transformers, config_name)(**{**SIZES, **values})
    model = getattr(transformers, class_name)(config).float().eval()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        # Parameters alone: the frequencies are buffers, and follow from the config.
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    model.save_pretrained(folder)
    tokens = np.random.default_rng(7).integers(0, SIZES["vocab_size"], (2, length))
    with torch.no_grad():
        return tokens, model(torch.tensor(tokens)).logits.numpy()


def config_of(folder: Path) -> dict[str, Any]:
    """Give config.json as the reference wrote it: the form of Transformers 5."""
    content: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return content


def as_v4(config: Mapping[str, Any], **renamed: str) -> dict[str, Any]:
    """Give the same config in the form of Transformers 4; `renamed` maps names to the older ones."""
    old = {renamed.get(name, name): value for name, value in config.items() if name != "rope_parameters"}
    rope = dict(config["rope_parameters"])
    old["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    old["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
    return old


def load(folder: Path, config: Mapping[str, Any]) -> Any:
    """Load a checkpoint by the installed plugin and the rules that ship."""
    architecture: Architecture = PluginManager().architecture(config["model_type"])
    module = architecture.build(architecture.read_config(config))
    rules = scoped_rules(architecture.nodes(config), registry, architecture.base_model_prefix)
    plan = build_plan(Checkpoint.open(folder), rules, param_specs(module), config=config)
    plan.check()
    bind(module, plan.load())
    return module


def whole(module: Any, tokens: Array) -> Array:
    """Give the logits of all tokens at once."""
    return np.array(module(mx.array(tokens.astype(np.int32))).astype(mx.float32))


def through_cache(module: Any, tokens: Array, chunks: int = 3, size: int = 7) -> Array:
    """Give the logits through the cache: some chunks, then one by one."""
    cache, length = module.make_cache(), tokens.shape[1]
    starts = [*range(0, chunks * size, size), *range(chunks * size, length)]
    ends = [*starts[1:], length]
    parts = [module(mx.array(tokens[:, a:b].astype(np.int32)), cache) for a, b in zip(starts, ends, strict=True)]
    return np.array(mx.concatenate(parts, axis=1))


def assert_close(got: Array, reference: Array) -> None:
    """Assert the same logits to float32's accuracy."""
    assert np.abs(got - reference).max() <= 1e-4 * max(1.0, np.abs(reference).max())
