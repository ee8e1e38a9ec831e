"""Adapters beside a loaded model: the cases C52 to C63 as far as loading decides them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, const, filled, write
from tests.runtime.models import config_of, write_model
from weightloom.engine import PlanError
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load
from weightloom.runtime.model import LoadedModel

LORA = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
ATTENTION = "base_model.model.model.layers.0.self_attn"
Q = f"{ATTENTION}.q_proj"
TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6]])


def adapter(folder: Path, arrays: Arrays, **values: Any) -> Path:
    """Write an adapter; a value of None leaves its field out."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "adapter_model.safetensors", arrays)
    content = {name: value for name, value in {**LORA, **values}.items() if value is not None}
    (folder / "adapter_config.json").write_text(json.dumps(content))
    return folder


def pair(module: str = Q, rank: int = 2, rows: int = 32, seed: int = 1) -> Arrays:
    """Random factors of a module whose weight is (rows, 32)."""
    return filled({f"{module}.lora_A.weight": (rank, 32), f"{module}.lora_B.weight": (rows, rank)}, seed)


def logits(m: LoadedModel) -> Array:
    return np.array(m.model(TOKENS))


def changed(base: Path, deltas: Mapping[str, Array], folder: Path) -> Array:
    """Give the logits of a base whose tensors were changed on disk."""
    arrays = {name: np.array(array) for name, array in mx.load(str(base / "model.safetensors")).items()}
    folder.mkdir()
    write(folder / "model.safetensors", {n: a + deltas[n] if n in deltas else a for n, a in arrays.items()})
    (folder / "config.json").write_bytes((base / "config.json").read_bytes())
    return logits(load(folder))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


def delta(arrays: Arrays, scale: float, module: str = Q) -> Array:
    return scale * (arrays[f"{module}.lora_B.weight"] @ arrays[f"{module}.lora_A.weight"])


@pytest.mark.case("C52")
def test_factors_are_not_transposed(base: Path, tmp_path: Path) -> None:
    """C52: the case's numbers in the corner of a square matrix."""
    a, b = const(0, 2, 32), const(0, 32, 2)
    a[:, :2], b[:2] = [[1, 2], [0, 1]], [[1, 0], [3, 1]]
    made = adapter(tmp_path / "lora", {f"{Q}.lora_A.weight": a, f"{Q}.lora_B.weight": b})
    wanted = const(0, 32, 32)
    wanted[:2, :2] = [[2, 4], [6, 14]]
    name = "model.layers.0.self_attn.q_proj.weight"
    reference = changed(base, {name: wanted}, tmp_path / "changed")
    assert np.allclose(logits(load(base, adapter=made)), reference, atol=1e-3)
    convert(base, Order(tmp_path / "fused", adapters=((made, 1.0),)), Wish())
    before, after = (np.array(mx.load(str(path / "model.safetensors"))[name]) for path in (base, tmp_path / "fused"))
    assert np.allclose(after - before, wanted, atol=1e-6)


@pytest.mark.case("C57")
def test_a_rank_stabilised_scale(base: Path, tmp_path: Path) -> None:
    """C57: 4 / sqrt(4)."""
    arrays = pair(rank=4)
    made = adapter(tmp_path / "lora", arrays, r=4, use_rslora=True)
    deltas = {"model.layers.0.self_attn.q_proj.weight": delta(arrays, 2.0)}
    assert np.allclose(logits(load(base, adapter=made)), changed(base, deltas, tmp_path / "changed"), atol=1e-3)


@pytest.mark.case("C54")
def test_everything_that_does_not_fit_is_listed(base: Path, tmp_path: Path) -> None:
    """C54: a typo, a factor alone, a kind that is not known; and nothing else is named."""
    lone = {name: a for name, a in pair(f"{ATTENTION}.k_proj", rows=16).items() if "lora_A" in name}
    magnitude = {f"{ATTENTION}.v_proj.lora_magnitude_vector": const(1, 16)}
    made = adapter(tmp_path / "lora", pair() | pair(f"{ATTENTION}.qq_proj") | lone | magnitude)
    with pytest.raises(PlanError, match="nothing was changed") as caught:
        load(base, adapter=made)
    said = str(caught.value)
    assert "qq_proj.lora_A.weight" in said and "qq_proj.lora_B.weight" in said
    assert "lora_B.model.layers.0.self_attn.k_proj.weight" in said and "v_proj.lora_magnitude_vector" in said
    assert ".q_proj" not in said


def test_every_name_of_many_is_listed(base: Path, tmp_path: Path) -> None:
    names = [f"{ATTENTION}.{letter * 3}_proj" for letter in "abcdefghijklmn"]
    made = adapter(tmp_path / "lora", {name: a for module in names for name, a in pair(module).items()})
    with pytest.raises(PlanError, match="none of 28 tensors leads to a parameter") as caught:
        load(base, adapter=made)
    assert all(name in str(caught.value) for name in names)


@pytest.mark.case("C55")
@pytest.mark.parametrize("field", ["r", "lora_alpha"])
def test_a_scale_is_not_guessed(field: str, base: Path, tmp_path: Path) -> None:
    """C55: a rank or an alpha is demanded."""
    with pytest.raises(ConfigError, match=field):
        load(base, adapter=adapter(tmp_path / "lora", pair(), **{field: None}))
    (tmp_path / "lora" / "adapter_config.json").unlink()
    with pytest.raises(ConfigError, match=r"no adapter_config\.json"):
        load(base, adapter=tmp_path / "lora")


@pytest.mark.case("C55")
def test_ranks_are_those_of_the_config(base: Path, tmp_path: Path) -> None:
    """C55: the file has ranks 2 and 1, the config one for both."""
    arrays = pair() | pair(f"{ATTENTION}.v_proj", rank=1, rows=16)
    with pytest.raises(PlanError, match=r"v_proj\.lora_A\.weight has rank 1, and adapter_config\.json 2"):
        load(base, adapter=adapter(tmp_path / "lora", arrays))
    with_pattern = adapter(tmp_path / "lora", arrays, rank_pattern={"v_proj": 1})
    deltas = {
        "model.layers.0.self_attn.q_proj.weight": delta(arrays, 2.0),
        "model.layers.0.self_attn.v_proj.weight": delta(arrays, 4.0, f"{ATTENTION}.v_proj"),
    }
    assert np.allclose(logits(load(base, adapter=with_pattern)), changed(base, deltas, tmp_path / "changed"), atol=1e-3)


@pytest.mark.case("C56")
@pytest.mark.parametrize(("key", "scale", "notes"), [("^q_proj", 2, 1), ("q_proj", 25, 0), ("proj", 2, 1)])
def test_a_pattern_is_a_whole_name_or_its_ending(
    key: str, scale: float, notes: int, base: Path, tmp_path: Path
) -> None:
    """C56."""
    arrays = pair(rank=4)
    made = adapter(tmp_path / "lora", arrays, r=4, lora_alpha=8, alpha_pattern={key: 100})
    deltas = {"model.layers.0.self_attn.q_proj.weight": delta(arrays, scale)}
    m = load(base, adapter=made)
    assert np.allclose(logits(m), changed(base, deltas, tmp_path / "changed"), atol=1e-3)
    assert len([note for note in m.notes if repr(key) in note]) == notes


@pytest.mark.case("C61")
def test_one_of_several_that_is_not_there_stops_the_load(base: Path, tmp_path: Path) -> None:
    """C61."""
    named = {name.replace(".weight", ".default.weight"): array for name, array in pair().items()}
    real = adapter(tmp_path / "real", named)
    with pytest.raises(UsageError, match=r"no directory .*missing"):
        load(base, adapter=[(tmp_path / "missing", 0.3), (real, 0.9)])
    deltas = {"model.layers.0.self_attn.q_proj.weight": delta(pair(), 0.9 * 2)}
    m = load(base, adapter=[(real, 0.9)])
    assert np.allclose(logits(m), changed(base, deltas, tmp_path / "changed"), atol=1e-3)


@pytest.mark.case("C62")
def test_a_head_that_is_tied_takes_no_adapter_of_its_own(tmp_path: Path) -> None:
    """C62: refused, by the same rule wherever the adapter goes; the embedding never changes for it."""
    tied = write_model(tmp_path / "tied", "llama", config_of("llama", tie_word_embeddings=True))
    made = adapter(tmp_path / "lora", pair("base_model.model.lm_head", rows=260))
    with pytest.raises(PlanError, match=r"base_model\.model\.lm_head\.lora_A\.weight"):
        load(tied, adapter=made)


@pytest.mark.case("C63")
def test_a_whole_tensor_of_another_size_stops_the_load(base: Path, tmp_path: Path) -> None:
    """C63: never dropped."""
    whole = {"base_model.model.model.embed_tokens.weight": const(1, 261, 32)}
    made = adapter(tmp_path / "lora", pair() | whole, modules_to_save=["embed_tokens"])
    with pytest.raises(PlanError, match=r"model\.embed_tokens\.weight"):
        load(base, adapter=made)


@pytest.mark.case("C63")
def test_a_whole_tensor_is_in_the_place_of_the_base_s_while_its_adapter_acts(base: Path, tmp_path: Path) -> None:
    """C63: of the base's own size."""
    rows = filled({"embed": (260, 32)}, seed=8)["embed"]
    whole = {"base_model.model.model.embed_tokens.weight": rows}
    made = adapter(tmp_path / "lora", pair() | whole, modules_to_save=["embed_tokens"])
    m, plain = load(base, adapter=made), load(base)
    before = np.array(mx.load(str(base / "model.safetensors"))["model.embed_tokens.weight"])
    deltas = {"model.layers.0.self_attn.q_proj.weight": delta(pair(), 2), "model.embed_tokens.weight": rows - before}
    assert np.allclose(logits(m), changed(base, deltas, tmp_path / "changed"), atol=1e-3)
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(logits(m), logits(plain))


def test_two_adapters_do_not_replace_one_tensor_at_once(base: Path, tmp_path: Path) -> None:
    parts = [{"base_model.model.lm_head.weight": const(n, 260, 32)} for n in range(2)]
    made = [adapter(tmp_path / f"lora{n}", part) for n, part in enumerate(parts)]
    with pytest.raises(UsageError, match=r"lora0 and lora1 replace lm_head\.weight"):
        load(base, adapter=[(path, 1.0) for path in made])
    m = load(base, adapter=[(made[0], 1.0), (made[1], 0.0)])
    assert m.adapters is not None
    assert not logits(m).any()
    with pytest.raises(UsageError, match="one of them at a time"):
        m.adapters.use("lora0", "lora1")
    assert not logits(m).any() and m.adapters.scales == {"lora0": 1.0, "lora1": 0.0}
    m.adapters.use("lora1")
    assert logits(m).any()


@pytest.mark.parametrize("stored_turned", [True, False])
def test_what_the_config_alone_decides_is_a_note(stored_turned: bool, base: Path, tmp_path: Path) -> None:
    """All changed weights are square: nothing but fan_in_fan_out says how they are stored."""
    m = load(
        base, adapter=adapter(tmp_path / "lora", pair(), fan_in_fan_out=stored_turned, modules_to_save=["lm_head"])
    )
    said = "fan_in_fan_out: taken as stored (in, out), as no linear layer's weight is: model.layers.0.self_attn.q_proj"
    assert any(note.endswith(said) for note in m.notes) == stored_turned
    assert any("modules_to_save has 'lm_head', of which the file has nothing" in note for note in m.notes)
