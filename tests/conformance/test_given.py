"""Checkpoints that hold more than a model has: it stays out of the way, and comes back when they are saved."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx

from tests.families import encoders, experts_b
from tests.families.samples import sample_of
from weightloom.plugins.testing import Conformance, Sample, write_checkpoint
from weightloom.runtime.conformance.comparing import stored_arrays
from weightloom.runtime.conformance.laws import OF_LOADING, OF_SAVING
from weightloom.runtime.conformance.subject import architecture_of

FURTHER = ("deepseek_v3", "deepseek_v32", "kimi_k2", "glm4_moe", "glm4_moe_lite")


def further_layer() -> dict[str, mx.array]:
    """Tensors of a layer that guesses further tokens, behind those that the config counts."""
    shapes = {
        "embed_tokens.weight": (64, 32),
        "eh_proj.weight": (32, 64),
        "enorm.weight": (32,),
        "hnorm.weight": (32,),
        "self_attn.o_proj.weight": (32, 32),
        "mlp.experts.0.gate_proj.weight": (32, 32),
        "shared_head.norm.weight": (32,),
    }
    return {f"model.layers.3.{name}": mx.random.normal(shape, key=mx.random.key(1)) for name, shape in shapes.items()}


def positions() -> dict[str, mx.array]:
    """The numbers of positions, which older releases wrote."""
    return {"embeddings.position_ids": mx.arange(64, dtype=mx.int64)[None]}


def write(sample: Sample, more: Callable[[], Mapping[str, mx.array]], folder: Path) -> None:
    """Write a generated checkpoint with tensors beside it."""
    write_checkpoint(sample, architecture_of(sample.config), folder)
    arrays = stored_arrays(folder)
    mx.eval(arrays)
    mx.save_safetensors(str(folder / "model.safetensors"), {**arrays, **more()}, {"format": "pt"})


def with_more(name: str, config: Mapping[str, Any], more: Callable[[], Mapping[str, mx.array]], **how: Any) -> Sample:
    return Sample(name, config, checkpoint=partial(write, Sample(name, config), more), **how)


class TestFurtherLayers(Conformance):
    laws = (*OF_LOADING, *OF_SAVING)
    samples = tuple(
        with_more(
            family.model_type,
            {**family.config(family.cases[0]), "num_nextn_predict_layers": 1},
            further_layer,
            quantized_in=family.quantized_in,
        )
        for family in experts_b.FAMILIES
        if family.model_type in FURTHER
    )


class TestNumbersOfPositions(Conformance):
    laws = (*OF_LOADING, *OF_SAVING)
    samples = tuple(
        with_more(family.name, sample_of(family, family.cases[0]).config, positions)
        for family in encoders.FAMILIES
        if family.name == "mpnet embed"
    )
