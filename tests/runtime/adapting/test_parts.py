"""Adapters of a model that is cut among ranks, or read when it is used: the same as of the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.fixtures import Arrays, const, filled
from tests.cases.test_adapter_load import ATTENTION, Q, adapter, logits, pair
from tests.runtime.adapting.rank_adapter import TOKENS
from tests.runtime.adapting.test_fusing_packed import in_four_bits
from tests.runtime.adapting.test_writing import EMBEDDING, decomposed, peft_experts
from tests.runtime.models import config_of, write_model
from tests.runtime.ranks import ask_ranks
from weightloom.engine.planning.sharding import Sharding
from weightloom.runtime.adapting.losses import LossPolicy
from weightloom.runtime.adapting.wish import Fusing
from weightloom.runtime.loading.loading import load

SCRIPT = str(Path(__file__).with_name("rank_adapter.py"))
BY_EXPERT = json.dumps({r"experts\.(gate_up_proj|down_proj)": "expert"})
MLP = "base_model.model.model.layers.1.mlp"


def everywhere() -> Arrays:
    """Factors of embeddings and head, of what is cut by rows, and of what is cut by columns."""
    shapes: dict[str, tuple[int, ...]] = {
        f"{EMBEDDING}.lora_embedding_A": (2, 260),
        f"{EMBEDDING}.lora_embedding_B": (32, 2),
        f"{MLP}.down_proj.lora_A.weight": (2, 48),
        f"{MLP}.down_proj.lora_B.weight": (32, 2),
    }
    head = pair("base_model.model.lm_head", rows=260)
    return pair() | pair(f"{ATTENTION}.o_proj") | pair(f"{MLP}.up_proj", rows=48) | head | filled(shapes, seed=8)


def assert_alike(base: Path, how: str, *adapters: Path, size: int = 2, atol: float = 5e-3) -> None:
    """Hold what every rank says against one process; one rank at least has less of the adapters than that."""
    ended = ask_ranks(SCRIPT, [str(base), how, *map(str, adapters)], size)
    assert [each.code for each in ended] == [0] * size, "\n".join(each.err for each in ended)
    said: list[dict[str, Any]] = [json.loads(each.out) for each in ended]
    m = load(base, adapter=[(each, 1.0) for each in adapters])
    assert m.adapters is not None
    whole = sum(array.size for name in m.adapters.names for array in m.adapters.read(name).arrays.values())
    wanted, plain = np.array(m.model(TOKENS)), np.array(load(base).model(TOKENS))
    assert np.abs(wanted - plain).max() > 0.1
    for each in said:
        np.testing.assert_allclose(np.array(each["with"]), wanted, atol=atol)
        np.testing.assert_allclose(np.array(each["without"]), plain, atol=2e-3)
        assert each["refusal"] == "each rank has a part of the adapter"
    assert min(each["held"] for each in said) < whole


@pytest.mark.parametrize(
    ("how", "size"), [("tensor", 2), ("pipeline", 3), pytest.param("pipeline", 2, marks=pytest.mark.thorough)]
)
def test_a_decoder_among_ranks(how: str, size: int, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama", config_of("llama", intermediate_size=48))
    made = adapter(tmp_path / "one", everywhere())
    assert_alike(base, how, made, adapter(tmp_path / "two", pair(seed=4)), size=size)


@pytest.mark.parametrize(
    "how",
    [
        BY_EXPERT,
        pytest.param("tensor", marks=pytest.mark.thorough),
        pytest.param("pipeline", marks=pytest.mark.thorough),
    ],
)
def test_experts_among_ranks(how: str, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "mixtral")
    assert_alike(base, how, adapter(tmp_path / "one", peft_experts() | pair()))


def packed_and_adapted(folder: Path) -> tuple[Path, Path]:
    sizes = {"hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 32}
    plain = write_model(folder / "plain", "llama", config_of("llama", **sizes))
    shapes: dict[str, tuple[int, ...]] = {}
    for name in (f"{ATTENTION}.o_proj", Q):
        shapes |= {f"{name}.lora_A.weight": (2, 128), f"{name}.lora_B.weight": (128, 2)}
    return in_four_bits(plain, folder / "packed"), adapter(folder / "one", filled(shapes, seed=8))


def test_a_packed_base_among_ranks(tmp_path: Path) -> None:
    base, made = packed_and_adapted(tmp_path)
    assert_alike(base, "tensor", made, atol=2e-2)


@pytest.mark.parametrize(("how", "when"), [("tensor", "keep"), ("pipeline", "dense")])
def test_fused_into_a_packed_base_among_ranks(how: str, when: Any, tmp_path: Path) -> None:
    base, made = packed_and_adapted(tmp_path)
    script = str(Path(__file__).with_name("rank_fused.py"))
    wanted = np.array(load(base, adapter=Fusing(made, LossPolicy(when, 0.01))).model(TOKENS))
    for each in ask_ranks(script, [str(base), str(made), how, when]):
        assert each.code == 0, each.err
        np.testing.assert_allclose(np.array(json.loads(each.out)), wanted, atol=2e-3)


def test_whole_tensors_are_cut_as_what_they_replace(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    rows = filled({"head": (260, 32)}, seed=9)["head"]
    whole = {"base_model.model.lm_head.weight": rows, f"{ATTENTION}.o_proj.weight": const(0.1, 32, 32)}
    for how in ("tensor", "pipeline"):
        assert_alike(base, how, adapter(tmp_path / how, pair() | whole))


def test_lengths_of_rows_that_a_rank_has_whole(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    made = adapter(tmp_path / "one", decomposed(), use_dora=True)
    for how in ("tensor", "pipeline"):
        assert_alike(base, how, made)


def test_lengths_of_what_no_rank_has_whole_are_refused_by_layer(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    names = [f"{ATTENTION}.o_proj", f"{MLP}.down_proj"]
    columns = {names[0]: 32, names[1]: config_of("llama")["intermediate_size"]}
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        shapes |= {f"{name}.lora_A.weight": (2, columns[name]), f"{name}.lora_B.weight": (32, 2)}
        shapes[f"{name}.lora_magnitude_vector"] = (32,)
    made = adapter(tmp_path / "one", filled(shapes, seed=3), use_dora=True)
    for each in ask_ranks(SCRIPT, [str(base), "tensor", str(made)]):
        assert each.code == 1
        assert "model.layers.0.self_attn.o_proj.weight, which is cut by row" in each.err
        assert "model.layers.1.mlp.down_proj.weight, which is cut by row" in each.err


def test_a_sharding_of_one_cuts_nothing(tmp_path: Path) -> None:
    from weightloom.runtime.adapting.parting import cut_among

    m = load(write_model(tmp_path / "base", "llama"), adapter=adapter(tmp_path / "one", everywhere_of_llama()))
    assert m.adapters is not None
    read = m.adapters.read()
    (part,) = cut_among([read], Sharding(0, 1, {"": "column"}))
    assert all(part.arrays[name] is read.arrays[name] for name in read.arrays)


def everywhere_of_llama() -> Arrays:
    return pair() | pair(f"{ATTENTION}.o_proj")


def unread(m: Any) -> list[str]:
    """Name the modules that wait for a parameter."""
    return [path for path, module in m.model.named_modules() if getattr(module, "_pending", None)]


@pytest.mark.parametrize("kind", ["llama", "mixtral"])
def test_beside_parameters_that_are_read_when_they_are_used(kind: str, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", kind)
    arrays = pair() | (peft_experts() if kind == "mixtral" else pair(f"{ATTENTION}.v_proj", rows=16))
    made = adapter(tmp_path / "one", arrays)
    m, eager = load(base, lazy=True, adapter=made), load(base, adapter=made)
    assert "model.layers.0.self_attn.q_proj" in unread(m)
    assert np.array_equal(logits(m), logits(eager))
    assert not unread(m)
    assert np.array_equal(logits(m), logits(eager))
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(logits(m), logits(load(base)))


def test_switched_before_anything_is_read(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    m = load(base, lazy=True, adapter=[(adapter(tmp_path / "one", pair()), 0.0)])
    assert np.array_equal(logits(m), logits(load(base)))
    assert m.adapters is not None
    m.adapters.use("one")
    assert np.array_equal(logits(m), logits(load(base, adapter=tmp_path / "one")))


def test_what_is_replaced_or_brought_to_lengths_is_read_at_once_and_nothing_else(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    head = {"base_model.model.lm_head.weight": const(0.5, 260, 32)}
    made = adapter(tmp_path / "one", decomposed() | head, use_dora=True)
    m = load(base, lazy=True, adapter=made)
    waiting = unread(m)
    assert "model.layers.0.self_attn.k_proj" in waiting and "model.embed_tokens" in waiting
    assert "model.layers.0.self_attn.q_proj" not in waiting and "lm_head" not in waiting
    assert np.array_equal(logits(m), logits(load(base, adapter=made)))
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(logits(m), logits(load(base)))


def test_lazily_on_a_packed_base(tmp_path: Path) -> None:
    base = in_four_bits(write_model(tmp_path / "plain", "llama"), tmp_path / "packed")
    made = adapter(tmp_path / "one", pair())
    assert np.array_equal(logits(load(base, lazy=True, adapter=made)), logits(load(base, adapter=made)))
