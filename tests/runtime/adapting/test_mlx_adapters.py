"""Adapters that mlx-lm wrote: C52's other form, C53's scale, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.fixtures import Arrays, const, filled, write
from tests.cases.test_adapter_load import adapter, changed, logits, pair
from tests.runtime.adapting.test_fusing import arrays_in
from tests.runtime.models import write_model
from weightloom.engine.errors import CheckpointError, ConfigError, PlanError
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load

Q = "model.layers.0.self_attn.q_proj"
CONFIG = {"fine_tune_type": "lora", "num_layers": 3, "iters": 10, "model": "somewhere"}


def mlx_adapter(folder: Path, arrays: Arrays, scale: object = 2.0, **values: Any) -> Path:
    """Write an adapter as mlx-lm does; a scale of None is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "adapters.safetensors", arrays)
    parameters = {"rank": 2, "dropout": 0.0, **({} if scale is None else {"scale": scale})}
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, "lora_parameters": parameters, **values}))
    return folder


def factors(module: str = Q, rows: int = 32, columns: int = 32) -> Arrays:
    return filled({f"{module}.lora_a": (columns, 2), f"{module}.lora_b": (2, rows)}, seed=4)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


@pytest.mark.case("C52", "C53")
def test_the_case_s_numbers(base: Path, tmp_path: Path) -> None:
    """C52 and C53: lora_a [[1,0],[2,1]], lora_b [[1,3],[0,1]], scale 2."""
    a, b = const(0, 32, 2), const(0, 2, 32)
    a[:2], b[:, :2] = [[1, 0], [2, 1]], [[1, 3], [0, 1]]
    wanted = const(0, 32, 32)
    wanted[:2, :2] = [[2, 4], [6, 14]]
    made = mlx_adapter(tmp_path / "mlx", {f"{Q}.lora_a": a, f"{Q}.lora_b": b})
    reference = changed(base, {f"{Q}.weight": wanted}, tmp_path / "changed")
    assert np.allclose(logits(load(base, adapter=made)), reference, atol=1e-3)


@pytest.mark.case("C53")
@pytest.mark.parametrize("scale", [None, "2", True, 10**400])
def test_a_scale_is_not_guessed(scale: object, base: Path, tmp_path: Path) -> None:
    """C53."""
    with pytest.raises(ConfigError, match=r"lora_parameters\.scale"):
        load(base, adapter=mlx_adapter(tmp_path / "mlx", factors(), scale))


@pytest.mark.parametrize(
    "values", [{"fine_tune_type": "loha"}, {"fine_tune_type": 3}, {"fine_tune_type": "full"}, {"lora_parameters": None}]
)
def test_other_kinds_are_named(values: dict[str, Any], base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(base, adapter=mlx_adapter(tmp_path / "mlx", factors(), **values))
    assert caught.value.field in values


def test_rows_are_brought_to_the_lengths_that_were_trained(base: Path, tmp_path: Path) -> None:
    """DoRA, of a linear layer and of embeddings: mlx-lm has the lengths by rows in both."""
    arrays = factors() | {f"{Q}.m": const(2, 32)} | {"model.embed_tokens.m": const(3, 260)}
    arrays |= filled({"model.embed_tokens.lora_a": (260, 2), "model.embed_tokens.lora_b": (2, 32)}, seed=7)
    stored = arrays_in(base)
    deltas = {}
    for stem, product, length in (
        (Q, (arrays[f"{Q}.lora_a"] @ arrays[f"{Q}.lora_b"]).T, 2),
        ("model.embed_tokens", arrays["model.embed_tokens.lora_a"] @ arrays["model.embed_tokens.lora_b"], 3),
    ):
        before = np.array(stored[f"{stem}.weight"])
        whole = before + 2 * product
        deltas[f"{stem}.weight"] = length * whole / np.linalg.norm(whole, axis=1, keepdims=True) - before
    made = mlx_adapter(tmp_path / "mlx", arrays, fine_tune_type="dora")
    wanted = changed(base, deltas, tmp_path / "changed")
    assert np.allclose(logits(load(base, adapter=made)), wanted, atol=1e-3)
    convert(base, Order(tmp_path / "fused", adapters=((made, 1.0),)), Wish())
    assert np.allclose(logits(load(tmp_path / "fused")), wanted, atol=1e-3)
    lacking = {name: array for name, array in arrays.items() if name != f"{Q}.m"}
    with pytest.raises(PlanError, match=f"lora_magnitude.{Q}.weight"):
        load(base, adapter=mlx_adapter(tmp_path / "two", lacking, fine_tune_type="dora"))


def test_a_config_has_to_be_there(base: Path, tmp_path: Path) -> None:
    made = mlx_adapter(tmp_path / "mlx", factors())
    (made / "adapter_config.json").unlink()
    with pytest.raises(ConfigError, match="lora_parameters with a scale"):
        load(base, adapter=made)


@pytest.mark.case("C54")
def test_what_does_not_fit_is_listed(base: Path, tmp_path: Path) -> None:
    """C54."""
    lone = {"model.layers.0.self_attn.k_proj.lora_a": const(1, 32, 2)}
    magnitude = {"model.layers.0.self_attn.v_proj.m": const(1, 16)}
    typo = factors("model.layers.0.self_attn.qq_proj")
    with pytest.raises(PlanError) as caught:
        load(base, adapter=mlx_adapter(tmp_path / "mlx", factors() | typo | lone | magnitude))
    said = str(caught.value)
    assert all(name in said for name in ("qq_proj.lora_a", "qq_proj.lora_b", "k_proj.weight", "v_proj.m"))
    assert f"{Q}." not in said


def test_one_of_each_kind_in_one_directory(base: Path, tmp_path: Path) -> None:
    both = adapter(mlx_adapter(tmp_path / "both", factors()), pair())
    with pytest.raises(CheckpointError, match=r"both adapter_model\.safetensors and adapters\.safetensors"):
        load(base, adapter=both)


def experts() -> Arrays:
    sizes = {"gate_proj": (24, 32), "up_proj": (24, 32), "down_proj": (32, 24)}
    place = "model.layers.1.block_sparse_moe.switch_mlp"
    shapes = {f"{place}.{n}.lora_a": (4, 2, columns) for n, (_, columns) in sizes.items()}
    return filled(shapes | {f"{place}.{n}.lora_b": (4, rows, 2) for n, (rows, _) in sizes.items()}, seed=9)


def test_stacked_experts_beside_and_fused(tmp_path: Path) -> None:
    """The base is as published, with experts one by one; the adapter is of the stacks of mlx-lm's model."""
    base = write_model(tmp_path / "base", "mixtral")
    made = mlx_adapter(tmp_path / "mlx", experts() | factors("model.embed_tokens", rows=32, columns=260), 0.5)
    arrays = experts()
    deltas = {
        f"model.layers.1.block_sparse_moe.experts.{n}.{w}.weight": 0.5
        * (arrays[f"{stem}.lora_b"][n] @ arrays[f"{stem}.lora_a"][n])
        for n in range(4)
        for w, stem in (
            (w, f"model.layers.1.block_sparse_moe.switch_mlp.{name}")
            for w, name in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj"))
        )
    }
    rows = factors("model.embed_tokens", rows=32, columns=260)
    deltas["model.embed_tokens.weight"] = 0.5 * (rows["model.embed_tokens.lora_a"] @ rows["model.embed_tokens.lora_b"])
    wanted = changed(base, deltas, tmp_path / "changed")
    assert np.allclose(logits(load(base, adapter=made)), wanted, atol=2e-2)
    convert(base, Order(tmp_path / "fused", adapters=((made, 1.0),)), Wish())
    assert np.allclose(logits(load(tmp_path / "fused")), wanted, atol=2e-2)
