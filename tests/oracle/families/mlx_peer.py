"""mlx-lm as a reference, for families that Transformers lacks: a random model of its own, and its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten

from tests.oracle.families import relaying

Array = np.ndarray[Any, Any]


def write(config: dict[str, Any], folder: Path, spread: float = 1 / 3) -> None:
    """Write a random checkpoint in float32: published names where relaying.py knows them, else those of mlx-lm."""
    generator = np.random.default_rng(11)
    parameters = dict(sorted(tree_flatten(_model(config).parameters())))
    state = {name: _values(name, array, generator, spread) for name, array in parameters.items()}
    known = config["model_type"] in relaying.RELAYINGS
    published = relaying.relaying_of(config).published(state, config)
    relaying.write(published, config, folder, **({} if known else {"format": "mlx"}))


def answers(folder: Path, tokens: Array) -> Array:
    """Give logits (2, L, vocab) for tokens (2, L), in float32."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = _model(config)
    weights = {name: mx.array(array) for name, array in relaying.state_for_reference(folder, config).items()}
    if hasattr(model, "sanitize"):
        weights = model.sanitize(weights)
    model.load_weights(list(weights.items()))
    model.eval()
    return np.array(model(mx.array(tokens)).astype(mx.float32))


def _values(name: str, array: mx.array, generator: np.random.Generator, spread: float) -> Array:
    found = (generator.standard_normal(array.shape) * spread).astype(np.float32)
    return found + 1 if array.ndim == 1 and name.endswith("norm.weight") else found


def _model(config: dict[str, Any]) -> Any:
    from mlx_lm.utils import _get_classes

    model_class, args_class = _get_classes(config=config)
    return model_class(args_class.from_dict(relaying.relaying_of(config).config(config)))
