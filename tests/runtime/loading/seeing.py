"""A tiny model that sees: a llama with a vision tower and a projector, offered by a plugin of its own."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mlx.core as mx
import numpy as np

from tests.cases.fixtures import filled, write
from tests.plugins.installed import install
from tests.runtime.models import config_of, write_model

TEXT = """
from dataclasses import replace
import mlx.nn as nn
from weightloom.plugins import SubModel, hookimpl
from weightloom.plugins.architectures.llama import LLAMA, build

class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4) for _ in range(2)]

    def __call__(self, pixels):
        for layer in self.layers:
            pixels = layer(pixels)
        return pixels

class Seeing(nn.Module):
    def __init__(self, text):
        super().__init__()
        self.text = text
        self.vision_tower = Tower()
        self.projector = nn.Linear(4, 32)

    def __call__(self, tokens, cache=None, pixels=None):
        hidden = self.text.body(tokens, cache)
        return self.text.head(hidden if pixels is None else hidden + self.projector(self.vision_tower(pixels)))

    def make_cache(self):
        return self.text.make_cache()

class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        return [
            replace(
                LLAMA,
                name="seeing",
                model_types=("seeing",),
                class_names=(),
                build=lambda config: Seeing(build(config)),
                sub_models=(SubModel("vision_tower", "Tower", "vision_config"),),
                towers=("vision_tower", "projector"),
            )
        ]

PLUGIN = Plugin()
"""
SEEN = {
    "vision_tower.layers.0.weight": (4, 4),
    "vision_tower.layers.0.bias": (4,),
    "vision_tower.layers.1.weight": (4, 4),
    "vision_tower.layers.1.bias": (4,),
    "projector.weight": (32, 4),
    "projector.bias": (32,),
}
SEEN_BYTES = sum(4 * math.prod(shape) for shape in SEEN.values())


def install_seeing(site: Path) -> None:
    """Put the plugin on a path."""
    install(site, "seeing", {"seeing": "seeing_model:PLUGIN"}, {"seeing_model": TEXT})


def write_seeing(folder: Path) -> Path:
    """Write its checkpoint: the text model's tensors under `text.`, then those of tower and projector."""
    write_model(folder, "llama")
    text = {f"text.{name}": np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    write(folder / "model.safetensors", {**text, **filled(SEEN, seed=9)})
    config = {**config_of("llama"), "model_type": "seeing", "vision_config": {"hidden_size": 4}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
