"""Adapters fused on the way from disk to disk: exact sums, all or nothing, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, const, filled
from tests.cases.test_adapter_load import ATTENTION, adapter, delta, logits, pair
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import PlanError, UsageError, WeightloomError
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Converted, Order, convert
from weightloom.runtime.loading.loading import load

NAME = "model.layers.0.self_attn.q_proj.weight"


def fuse(base: Path, target: Path, *adapters: Path, **changes: Any) -> Converted:
    return convert(base, Order(target, adapters=tuple((path, 1.0) for path in adapters), **changes), Wish())


def arrays_in(folder: Path) -> dict[str, mx.array]:
    found: Any = mx.load(str(folder / "model.safetensors"))
    return dict(found)


def same_bits(one: mx.array, other: mx.array) -> bool:
    return one.dtype == other.dtype and bool(mx.array_equal(one, other))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


def in_bfloat16(base: Path, folder: Path) -> Path:
    convert(base, Order(folder, dtype="BF16"), Wish())
    return folder


def test_sums_are_made_in_float32_and_rounded_once(base: Path, tmp_path: Path) -> None:
    base = in_bfloat16(base, tmp_path / "bf16")
    one, two = pair(), pair(seed=2)
    fuse(base, tmp_path / "fused", adapter(tmp_path / "one", one), adapter(tmp_path / "two", two, lora_alpha=1))
    before, after = arrays_in(base), arrays_in(tmp_path / "fused")
    exact = np.array(before[NAME].astype(mx.float32)).astype(np.float64) + delta(one, 2.0) + delta(two, 0.5)
    wanted = mx.array(exact.astype(np.float32)).astype(mx.bfloat16)
    assert after.keys() == before.keys()
    assert all(same_bits(after[name], before[name]) for name in before if name != NAME)
    differ = np.array(after[NAME] != wanted)
    # A sum that lies at the middle of two may go either way by the last bit of float32.
    assert after[NAME].dtype == mx.bfloat16 and differ.mean() < 0.005


def test_the_fused_model_is_the_one_with_the_adapter_beside_it(base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair(), alpha_pattern={"^q_proj": 100})
    done = fuse(base, tmp_path / "fused", made, layout="hf")
    assert any("alpha_pattern has '^q_proj'" in note for note in done.notes)
    assert any("adapters changed the values" in note for note in done.notes)
    assert np.allclose(logits(load(tmp_path / "fused")), logits(load(base, adapter=made)), atol=1e-3)


def experts(module: str) -> Arrays:
    place = f"base_model.model.model.layers.1.block_sparse_moe.experts.{module}"
    rows, columns = (32, 24) if module.endswith("w2") else (24, 32)
    return filled({f"{place}.lora_A.weight": (2, columns), f"{place}.lora_B.weight": (rows, 2)}, seed=len(module))


@pytest.mark.case("C60")
def test_experts_one_by_one_go_back_to_files_one_by_one(tmp_path: Path) -> None:
    """C60: their parameters are two stacks."""
    base = write_model(tmp_path / "base", "mixtral")
    parts = {name: a for n in range(4) for w in ("w1", "w2", "w3") for name, a in experts(f"{n}.{w}").items()}
    made = adapter(tmp_path / "one", parts)
    fuse(base, tmp_path / "fused", made)
    before, after = arrays_in(base), arrays_in(tmp_path / "fused")
    assert after.keys() == before.keys()
    for n, w in ((0, "w1"), (3, "w2"), (2, "w3")):
        place = f"model.layers.1.block_sparse_moe.experts.{n}.{w}"
        wanted = np.array(before[f"{place}.weight"]) + delta(parts, 2.0, f"base_model.model.{place}")
        assert np.allclose(np.array(after[f"{place}.weight"]), wanted, atol=1e-4)
    assert np.allclose(logits(load(tmp_path / "fused")), logits(load(base, adapter=made)), atol=1e-2)


def whole(value: float = 3, rows: int = 260) -> dict[str, Array]:
    return {"base_model.model.model.embed_tokens.weight": const(value, rows, 32)}


@pytest.mark.case("C63")
def test_whole_tensors_take_the_place_of_the_base_s(base: Path, tmp_path: Path) -> None:
    """C63: of the base's size."""
    made = adapter(tmp_path / "one", pair() | whole(), modules_to_save=["embed_tokens"])
    fuse(in_bfloat16(base, tmp_path / "bf16"), tmp_path / "fused", made)
    found = arrays_in(tmp_path / "fused")["model.embed_tokens.weight"]
    assert same_bits(found, mx.full((260, 32), 3, mx.bfloat16))


@pytest.mark.parametrize(
    ("arrays", "error", "said"),
    [
        (pair() | pair(f"{ATTENTION}.qq_proj"), PlanError, r"qq_proj\.lora_A\.weight"),
        (whole(rows=261), PlanError, r"model\.embed_tokens\.weight"),
        (pair("base_model.model.model.norm"), PlanError, r"model\.norm"),
    ],
)
def test_what_does_not_fit_writes_nothing(
    arrays: Arrays, error: type[WeightloomError], said: str, base: Path, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        fuse(base, tmp_path / "fused", adapter(tmp_path / "one", arrays))
    assert not (tmp_path / "fused").exists()


def test_two_replacements_of_one_tensor(base: Path, tmp_path: Path) -> None:
    made = [adapter(tmp_path / str(n), whole(n)) for n in range(2)]
    with pytest.raises(UsageError, match=r"two adapters replace model\.embed_tokens\.weight"):
        fuse(base, tmp_path / "fused", *made)


@pytest.mark.case("C62")
def test_the_head_of_a_tied_model(tmp_path: Path) -> None:
    """C62: as on load."""
    tied = write_model(tmp_path / "tied", "llama", config_of("llama", tie_word_embeddings=True))
    made = adapter(tmp_path / "lora", pair("base_model.model.lm_head", rows=260))
    with pytest.raises(PlanError, match=r"base_model\.model\.lm_head\.lora_A\.weight"):
        fuse(tied, tmp_path / "fused", made)


def packed(base: Path, folder: Path) -> Path:
    """Write the same model with q_proj of the first layer in 4 bits, as mlx-lm does."""
    import json

    found = arrays_in(base)
    weight, scales, biases = mx.quantize(found[NAME], 32, 4)
    stem = NAME.removesuffix(".weight")
    folder.mkdir()
    mx.save_safetensors(
        str(folder / "model.safetensors"),
        {**found, NAME: weight, f"{stem}.scales": scales, f"{stem}.biases": biases},
        {"format": "mlx"},
    )
    config = {**config_of("llama"), "quantization": {"bits": 4, "group_size": 32}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_beside_packed_weights_it_is_there_in_full(base: Path, tmp_path: Path) -> None:
    quantized, made = packed(base, tmp_path / "packed"), adapter(tmp_path / "one", pair())
    m = load(quantized, adapter=made)
    with_adapter = logits(m)
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(logits(m), logits(load(quantized)))
    assert not np.allclose(logits(m), with_adapter, atol=1e-2)


def test_a_packed_matrix_is_not_replaced(base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", {f"base_model.model.{NAME}": const(1, 32, 32)})
    with pytest.raises(UsageError, match=f"{NAME}, which are packed"):
        load(packed(base, tmp_path / "packed"), adapter=made)


def test_the_command(cli: Cli, base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair())
    done = cli("convert", base, tmp_path / "fused", "--adapter", made, "--json")
    assert done.code == 0, done.err
    assert not same_bits(arrays_in(tmp_path / "fused")[NAME], arrays_in(base)[NAME])
    assert cli("convert", base, tmp_path / "none", "--adapter", tmp_path / "missing").code != 0
