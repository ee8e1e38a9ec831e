"""Adapters of other forms than two factors of a linear layer: lengths, bare parameters, biases, encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, const, filled
from tests.cases.test_adapter_load import ATTENTION, Q, adapter, changed, delta, logits, pair
from tests.runtime.adapting.test_fusing import arrays_in
from tests.runtime.models import config_of, runnable, sentence_files, write_model
from weightloom.engine import PlanError
from weightloom.engine.errors import UsageError
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load

WEIGHT = "model.layers.0.self_attn.q_proj.weight"
EMBEDDING = "base_model.model.model.embed_tokens"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


def weight_of(base: Path, name: str) -> Array:
    return np.array(arrays_in(base)[name])


def brought_to(weight: Array, lengths: Array, axis: int) -> Array:
    """Give a weight whose rows (axis 1) or columns (axis 0) have these lengths."""
    return weight / np.linalg.norm(weight, axis=axis, keepdims=True) * np.expand_dims(lengths, axis)


def fused_logits(base: Path, made: Path, folder: Path) -> Array:
    convert(base, Order(folder, adapters=((made, 1.0),)), Wish())
    return logits(load(folder))


def agree(base: Path, made: Path, deltas: dict[str, Array], folder: Path, **values: Any) -> Any:
    """Hold an adapter, beside and fused, against the base changed on disk; give the model with it beside."""
    wanted = changed(base, deltas, folder / "changed")
    m = load(base, adapter=made)
    assert np.allclose(logits(m), wanted, atol=1e-3)
    assert np.allclose(fused_logits(base, made, folder / "fused"), wanted, atol=1e-3)
    assert not np.allclose(wanted, logits(load(base)), atol=1e-2)
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(logits(m), logits(load(base)))
    return m


MAGNITUDES = ["lora_magnitude_vector", "lora_magnitude_vector.default", "lora_magnitude_vector.french.weight"]


@pytest.mark.parametrize("name", MAGNITUDES)
def test_rows_are_brought_to_the_lengths_that_were_trained(name: str, base: Path, tmp_path: Path) -> None:
    """DoRA of PEFT, under each name that it has given the lengths."""
    lengths = filled({"m": (32,)}, seed=3)["m"]
    made = adapter(tmp_path / "lora", pair() | {f"{Q}.{name}": lengths}, use_dora=True)
    before = weight_of(base, WEIGHT)
    agree(base, made, {WEIGHT: brought_to(before + delta(pair(), 2), lengths, 1) - before}, tmp_path)


def test_a_dial_between_makes_a_part_of_the_change_and_several_add_up(base: Path, tmp_path: Path) -> None:
    """Whatever their order: each is the difference that it makes to the base."""
    lengths = filled({"m": (32,)}, seed=3)["m"]
    one = adapter(tmp_path / "one", pair() | {f"{Q}.lora_magnitude_vector": lengths}, use_dora=True)
    two = adapter(tmp_path / "two", pair(seed=2))
    before = weight_of(base, WEIGHT)
    first = brought_to(before + delta(pair(), 2), lengths, 1) - before
    deltas = {WEIGHT: 0.25 * first + 0.5 * delta(pair(seed=2), 2)}
    wanted = changed(base, deltas, tmp_path / "changed")
    for number, given in enumerate(([(one, 0.25), (two, 0.5)], [(two, 0.5), (one, 0.25)])):
        assert np.allclose(logits(load(base, adapter=given)), wanted, atol=1e-3)
        convert(base, Order(tmp_path / str(number), adapters=tuple(given)), Wish())
        assert np.allclose(logits(load(tmp_path / str(number))), wanted, atol=1e-3)


def embedding(columns: int = 32) -> Arrays:
    return filled({f"{EMBEDDING}.lora_embedding_A": (2, 260), f"{EMBEDDING}.lora_embedding_B": (columns, 2)}, seed=6)


@pytest.mark.parametrize("tied", [False, True])
def test_columns_of_embeddings_are_brought_to_theirs(tied: bool, tmp_path: Path) -> None:
    """PEFT has the lengths of an embedding by columns; where the head is tied, it is changed with it."""
    base = write_model(tmp_path / "base", "llama", config_of("llama", tie_word_embeddings=tied))
    arrays, lengths = embedding(), filled({"m": (32,)}, seed=3)["m"]
    made = adapter(tmp_path / "lora", arrays | {f"{EMBEDDING}.lora_magnitude_vector": lengths}, use_dora=True)
    before = weight_of(base, "model.embed_tokens.weight")
    product = 2 * (arrays[f"{EMBEDDING}.lora_embedding_B"] @ arrays[f"{EMBEDDING}.lora_embedding_A"]).T
    agree(base, made, {"model.embed_tokens.weight": brought_to(before + product, lengths, 0) - before}, tmp_path)


def test_every_change_has_its_lengths_and_none_where_the_config_says_so(base: Path, tmp_path: Path) -> None:
    lengths = {f"{Q}.lora_magnitude_vector": const(1, 32)}
    v = pair(f"{ATTENTION}.v_proj", rows=16)
    with pytest.raises(PlanError, match=r"missing: lora_magnitude\.model\.layers\.0\.self_attn\.v_proj\.weight"):
        load(base, adapter=adapter(tmp_path / "one", pair() | v | lengths, use_dora=True))
    with pytest.raises(PlanError, match=r"q_proj\.lora_magnitude_vector"):
        load(base, adapter=adapter(tmp_path / "two", pair() | lengths))
    with pytest.raises(PlanError, match=r"lora_magnitude\.model\.layers\.0\.self_attn\.q_proj\.weight"):
        wrong = {f"{Q}.lora_magnitude_vector": const(1, 31)}
        load(base, adapter=adapter(tmp_path / "three", pair() | wrong, use_dora=True))


def test_experts_one_by_one_have_lengths_one_by_one(tmp_path: Path) -> None:
    """Joined and stacked with their rows."""
    base = write_model(tmp_path / "base", "mixtral")
    arrays: Arrays = {}
    deltas: dict[str, Array] = {}
    for n in range(4):
        for w, rows, columns in (("w1", 24, 32), ("w2", 32, 24), ("w3", 24, 32)):
            place = f"model.layers.1.block_sparse_moe.experts.{n}.{w}"
            a, b, m = (f"base_model.model.{place}.lora_{kind}" for kind in ("A.weight", "B.weight", "magnitude_vector"))
            arrays |= filled({a: (2, columns), b: (rows, 2), m: (rows,)}, seed=10 * n + int(w[1]))
            before = weight_of(base, f"{place}.weight")
            deltas[f"{place}.weight"] = brought_to(before + 2 * arrays[b] @ arrays[a], arrays[m], 1) - before
    agree(base, adapter(tmp_path / "lora", arrays, use_dora=True), deltas, tmp_path)


def test_an_architecture_says_which_kinds_it_takes(base: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from weightloom.plugins import PluginManager
    from weightloom.runtime.adapting.adapters import read_adapters

    llama = PluginManager().architecture("llama")
    config = config_of("llama")
    module = llama.build(llama.read_config(config))
    lengths = {f"{Q}.lora_magnitude_vector": const(1, 32)}
    made = adapter(tmp_path / "one", pair() | lengths, use_dora=True)
    with pytest.raises(UsageError, match="llama takes no dora adapter"):
        read_adapters([(made, 1.0)], replace(llama, adapters=("lora",)), module, config)


def test_biases_that_were_trained_are_in_place_while_the_adapter_acts(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "bert")
    stem = "encoder.layer.0.attention.self.query"
    arrays = pair_of(stem, 16, 16) | {f"base_model.model.{stem}.base_layer.bias": const(3, 16)}
    made = adapter(tmp_path / "lora", arrays, bias="lora_only")
    a, b = arrays[f"base_model.model.{stem}.lora_A.weight"], arrays[f"base_model.model.{stem}.lora_B.weight"]
    deltas = {f"{stem}.weight": 2 * (b @ a), f"{stem}.bias": const(3, 16) - weight_of(base, f"{stem}.bias")}
    agree(base, made, deltas, tmp_path)


def pair_of(stem: str, rows: int, columns: int, seed: int = 1) -> Arrays:
    module = f"base_model.model.{stem}"
    return filled({f"{module}.lora_A.weight": (2, columns), f"{module}.lora_B.weight": (rows, 2)}, seed)


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_an_encoder(prefix: str, tmp_path: Path) -> None:
    """An adapter of the encoder alone, and of a model with a head on it."""
    base = write_model(tmp_path / "base", "bert")
    stems = {"encoder.layer.1.intermediate.dense": (24, 16), "embeddings.word_embeddings": (260, 16)}
    arrays = pair_of(f"{prefix}encoder.layer.1.intermediate.dense", 24, 16)
    module = f"base_model.model.{prefix}embeddings.word_embeddings"
    arrays |= filled({f"{module}.lora_embedding_A": (2, 260), f"{module}.lora_embedding_B": (16, 2)}, seed=4)
    dense = f"base_model.model.{prefix}encoder.layer.1.intermediate.dense"
    deltas = {
        "encoder.layer.1.intermediate.dense.weight": 2
        * (arrays[f"{dense}.lora_B.weight"] @ arrays[f"{dense}.lora_A.weight"]),
        "embeddings.word_embeddings.weight": 2
        * (arrays[f"{module}.lora_embedding_B"] @ arrays[f"{module}.lora_embedding_A"]).T,
    }
    assert {f"{stem}.weight" for stem in stems} == set(deltas)
    agree(base, adapter(tmp_path / "lora", arrays), deltas, tmp_path)


def test_embed_with_an_adapter(tmp_path: Path) -> None:
    """Texts are embedded by the changed encoder, beside as fused, and by the base again when it is off."""
    from weightloom.runtime import embed

    base = sentence_files(runnable(tmp_path / "base", "bert"))
    made = adapter(tmp_path / "lora", pair_of("encoder.layer.0.attention.self.query", 16, 16))
    texts, m = ["one", "another text"], load(base, adapter=made)
    convert(base, Order(tmp_path / "fused", adapters=((made, 1.0),)), Wish())
    beside = np.array(embed(m, texts))
    assert np.allclose(beside, np.array(embed(load(tmp_path / "fused"), texts)), atol=1e-4)
    assert m.adapters is not None
    m.adapters.use()
    plain = np.array(embed(load(base), texts))
    assert np.array_equal(np.array(embed(m, texts)), plain)
    assert not np.allclose(beside, plain, atol=1e-3)


def test_embeddings_that_were_saved_with_their_factors(base: Path, tmp_path: Path) -> None:
    """PEFT writes the base's own with them; an equal one is no replacement, so that several may have it."""
    own = {f"{EMBEDDING}.base_layer.weight": weight_of(base, "model.embed_tokens.weight")}
    arrays = embedding()
    product = 2 * (arrays[f"{EMBEDDING}.lora_embedding_B"] @ arrays[f"{EMBEDDING}.lora_embedding_A"]).T
    made = [adapter(tmp_path / name, arrays | own) for name in ("one", "two")]
    m = load(base, adapter=[(path, 0.5) for path in made])
    wanted = changed(base, {"model.embed_tokens.weight": product}, tmp_path / "changed")
    assert np.allclose(logits(m), wanted, atol=1e-3)
    assert np.allclose(fused_logits(base, made[0], tmp_path / "fused"), wanted, atol=1e-3)
    convert(base, Order(tmp_path / "both", adapters=tuple((path, 0.5) for path in made)), Wish())
    assert np.allclose(logits(load(tmp_path / "both")), wanted, atol=1e-3)


@pytest.mark.case("C61")
def test_an_adapter_of_any_name(base: Path, tmp_path: Path) -> None:
    named = {name.replace(".weight", ".my-french_2.weight"): array for name, array in pair().items()}
    own, head = embedding(), const(0.5, 260, 32)
    product = 2 * (own[f"{EMBEDDING}.lora_embedding_B"] @ own[f"{EMBEDDING}.lora_embedding_A"]).T
    others = {f"{name}.my-french_2": array for name, array in own.items()}
    others["base_model.model.lm_head.modules_to_save.my-french_2.weight"] = head
    made = adapter(tmp_path / "lora", named | others)
    deltas = {
        WEIGHT: delta(pair(), 2),
        "model.embed_tokens.weight": product,
        "lm_head.weight": head - weight_of(base, "lm_head.weight"),
    }
    agree(base, made, deltas, tmp_path)
    with pytest.raises(PlanError, match="none of 0 tensors leads to a parameter"):
        load(base, adapter=adapter(tmp_path / "empty", {}))
    with pytest.raises(PlanError, match=r"two sources for one parameter: .*my-french_2"):
        load(base, adapter=adapter(tmp_path / "two", named | pair()))


@pytest.mark.case("C62")
def test_a_head_that_is_tied_takes_no_adapter_of_mlx_lm_either(tmp_path: Path) -> None:
    """Beside and fused: the rule is one, and names the tensors."""
    from tests.runtime.adapting.test_mlx_adapters import factors, mlx_adapter

    tied = write_model(tmp_path / "tied", "llama", config_of("llama", tie_word_embeddings=True))
    made = mlx_adapter(tmp_path / "mlx", factors("lm_head", rows=260))
    with pytest.raises(PlanError, match=r"lm_head\.lora_a"):
        load(tied, adapter=made)
    with pytest.raises(PlanError, match=r"lm_head\.lora_a"):
        fused_logits(tied, made, tmp_path / "fused")
