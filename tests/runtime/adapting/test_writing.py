"""Adapters written: as they were read, in the other format, and back, through the inverse of the base's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Arrays, const, filled
from tests.cases.test_adapter_load import ATTENTION, LORA, Q, adapter, logits, pair
from tests.runtime.adapting.test_mlx_adapters import experts as mlx_experts
from tests.runtime.adapting.test_mlx_adapters import factors, mlx_adapter
from tests.runtime.models import write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import CheckpointError, NotInvertible, PlanError, UsageError
from weightloom.runtime.adapting.adapter_config import read_adapter_config
from weightloom.runtime.adapting.peft_form import alpha_of
from weightloom.runtime.loading.loading import load

K = f"{ATTENTION}.k_proj"
EMBEDDING = "base_model.model.model.embed_tokens"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


def tensors(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*.safetensors")
    found: Any = mx.load(str(file))
    return {name: np.array(array) for name, array in found.items()}


def config(folder: Path) -> Any:
    return json.loads((folder / "adapter_config.json").read_text())


def same(one: Path, other: Path) -> bool:
    left, right = tensors(one), tensors(other)
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def converted(cli: Cli, base: Path, source: Path, target: Path, form: str) -> Path:
    done = cli("adapter", "convert", source, target, "--format", form, "--base", base)
    assert done.code == 0, done.err
    return target


@pytest.mark.case("C57")
def test_what_was_read_is_written_byte_for_byte(base: Path, tmp_path: Path, cli: Cli) -> None:
    """C57: the flag of a rank-stabilised adapter is kept, and every other field."""
    made = adapter(tmp_path / "one", pair(rank=4), r=4, use_rslora=True, later={"some": "thing"})
    load(base, adapter=made).save_adapter(tmp_path / "again")
    converted(cli, base, made, tmp_path / "third", "peft")
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes()
        assert (tmp_path / "third" / name).read_bytes() == (made / name).read_bytes()
    assert config(tmp_path / "again")["use_rslora"] is True


@pytest.mark.case("C52")
def test_the_case_s_numbers_in_both_formats(base: Path, tmp_path: Path, cli: Cli) -> None:
    """C52: lora_a [[1,0],[2,1]], lora_b [[1,3],[0,1]], scale 2."""
    a, b = const(0, 2, 32), const(0, 32, 2)
    a[:, :2], b[:2] = [[1, 2], [0, 1]], [[1, 0], [3, 1]]
    made = adapter(tmp_path / "one", {f"{Q}.lora_A.weight": a, f"{Q}.lora_B.weight": b})
    written = converted(cli, base, made, tmp_path / "mlx", "mlx")
    found = tensors(written)
    module = "model.layers.0.self_attn.q_proj"
    assert found.keys() == {f"{module}.lora_a", f"{module}.lora_b"}
    assert found[f"{module}.lora_a"][:2].tolist() == [[1, 0], [2, 1]]
    assert found[f"{module}.lora_b"][:, :2].tolist() == [[1, 3], [0, 1]]
    parameters = config(written)["lora_parameters"]
    assert parameters == {"rank": 2, "scale": 2.0, "dropout": 0.0, "keys": [module]}
    assert config(written)["num_layers"] == 3
    again = converted(cli, base, written, tmp_path / "peft", "peft")
    assert same(again, made)
    assert {name: config(again)[name] for name in ("r", "lora_alpha", "target_modules")} == {
        **{name: LORA[name] for name in ("r", "lora_alpha")},
        "target_modules": [module],
    }


def peft_experts(w1: int = 2) -> Arrays:
    place = "base_model.model.model.layers.1.block_sparse_moe.experts"
    sizes = {"w1": (24, 32, w1), "w3": (24, 32, 2), "w2": (32, 24, 2)}
    shapes: dict[str, tuple[int, ...]] = {}
    for n in range(4):
        for w, (rows, columns, rank) in sizes.items():
            shapes[f"{place}.{n}.{w}.lora_A.weight"] = (rank, columns)
            shapes[f"{place}.{n}.{w}.lora_B.weight"] = (rows, rank)
    return filled(shapes, seed=2)


@pytest.mark.case("C60")
def test_experts_go_back_to_their_published_names(tmp_path: Path, cli: Cli) -> None:
    """C60 backwards: parameters are two stacks, PEFT's files have modules one by one, mlx-lm's have three stacks."""
    base = write_model(tmp_path / "base", "mixtral")
    made = adapter(tmp_path / "one", peft_experts() | pair())
    stacked = converted(cli, base, made, tmp_path / "mlx", "mlx")
    found = tensors(stacked)
    place = "model.layers.1.block_sparse_moe.switch_mlp"
    assert found[f"{place}.gate_proj.lora_a"].shape == (4, 2, 32)
    assert found[f"{place}.gate_proj.lora_b"].shape == (4, 24, 2)
    assert len(found) == 3 * 2 + 2
    again = converted(cli, base, stacked, tmp_path / "peft", "peft")
    assert same(again, made)
    assert config(again)["r"] == 2 and config(again)["lora_alpha"] == 4 and not config(again)["rank_pattern"]
    reference = logits(load(base, adapter=made))
    assert np.array_equal(logits(load(base, adapter=again)), reference)
    assert np.allclose(logits(load(base, adapter=stacked)), reference, atol=1e-4)


def test_stacks_of_mlx_lm_go_to_published_names_and_back(tmp_path: Path, cli: Cli) -> None:
    base = write_model(tmp_path / "base", "mixtral")
    made = mlx_adapter(tmp_path / "one", mlx_experts() | factors("model.embed_tokens", rows=32, columns=260), 0.3)
    peft = converted(cli, base, made, tmp_path / "peft", "peft")
    assert tensors(peft)[f"{EMBEDDING}.lora_embedding_A"].shape == (2, 260)
    assert read_adapter_config(peft / "adapter_config.json").scale("model.embed_tokens") == 0.3
    again = converted(cli, base, peft, tmp_path / "mlx", "mlx")
    assert same(again, made) and config(again)["lora_parameters"]["scale"] == 0.3
    assert np.allclose(logits(load(base, adapter=peft)), logits(load(base, adapter=made)), atol=1e-4)


def test_one_rank_and_one_scale_for_all_are_made_and_said(base: Path, tmp_path: Path, cli: Cli) -> None:
    arrays = pair(rank=3) | pair(K, rank=2, rows=16) | pair(f"{ATTENTION}.v_proj", rank=2, rows=16)
    patterns = {"rank_pattern": {"q_proj": 3}, "alpha_pattern": {"k_proj": 5}}
    made = adapter(tmp_path / "one", arrays, lora_alpha=6, **patterns)
    m = load(base, adapter=made)
    done = m.save_adapter(tmp_path / "mlx", form="mlx")
    assert any("zeros up to rank 3" in note for note in done.notes)
    assert any("was multiplied" in note for note in done.notes)
    assert all(array.shape[1] == 3 for name, array in tensors(tmp_path / "mlx").items() if name.endswith("lora_a"))
    assert np.allclose(logits(load(base, adapter=tmp_path / "mlx")), logits(m), atol=1e-4)
    back = converted(cli, base, tmp_path / "mlx", tmp_path / "peft", "peft")
    assert np.allclose(logits(load(base, adapter=back)), logits(m), atol=1e-4)


def test_ranks_and_alphas_of_their_own_are_patterns(base: Path, tmp_path: Path) -> None:
    from weightloom.runtime.adapting.peft_form import as_peft
    from weightloom.runtime.adapting.published import Factor, Published
    from weightloom.runtime.adapting.written import About

    wide = Factor("model.layers.0.self_attn.q_proj.weight", mx.ones((4, 32)), mx.ones((32, 4)), 0.5)
    plain = [
        Factor(f"model.layers.{n}.self_attn.v_proj.weight", mx.ones((2, 32)), mx.ones((16, 2)), 1.5) for n in range(2)
    ]
    written = as_peft(Published((wide, *plain)), About("base", "generate", 3))
    assert written.config["r"] == 2 and written.config["lora_alpha"] == 3
    assert written.config["rank_pattern"] == {"model.layers.0.self_attn.q_proj": 4}
    assert written.config["alpha_pattern"] == {"model.layers.0.self_attn.q_proj": 2}
    (tmp_path / "adapter_config.json").write_bytes(written.config_bytes)
    read = read_adapter_config(tmp_path / "adapter_config.json")
    assert read.scale("model.layers.0.self_attn.q_proj") == 0.5 and read.scale("model.layers.1.self_attn.v_proj") == 1.5


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 7, 8, 12, 48, 100])
@pytest.mark.parametrize("scale", [0.1, 0.3, 1 / 3, 2.0, 20.0, 1e-3, 7.77, -1.5])
def test_alpha_gives_the_scale_back(rank: int, scale: float) -> None:
    """To the last bit wherever the rank is a power of two, and within it elsewhere."""
    found = alpha_of(scale, rank) / rank
    assert found == scale if rank & (rank - 1) == 0 else abs(found - scale) <= np.spacing(abs(scale))


def test_embeddings_go_to_mlx_and_back(base: Path, tmp_path: Path, cli: Cli) -> None:
    shapes = {f"{EMBEDDING}.lora_embedding_A": (2, 260), f"{EMBEDDING}.lora_embedding_B": (32, 2)}
    made = adapter(tmp_path / "one", filled(shapes, seed=3) | pair())
    stacked = converted(cli, base, made, tmp_path / "mlx", "mlx")
    assert tensors(stacked)["model.embed_tokens.lora_a"].shape == (260, 2)
    assert same(converted(cli, base, stacked, tmp_path / "peft", "peft"), made)
    assert np.allclose(logits(load(base, adapter=stacked)), logits(load(base, adapter=made)), atol=1e-4)


def test_whole_tensors_have_no_place_in_mlx_lm_s_format(base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair() | {f"{EMBEDDING}.weight": const(1, 260, 32)})
    m = load(base, adapter=made)
    with pytest.raises(PlanError, match=r"model\.embed_tokens\.weight is a whole tensor"):
        m.save_adapter(tmp_path / "mlx", form="mlx")
    assert not (tmp_path / "mlx").exists()
    m.save_adapter(tmp_path / "peft", form="peft")
    assert same(tmp_path / "peft", made)


def test_what_fits_no_base_or_target_writes_nothing(base: Path, tmp_path: Path, cli: Cli) -> None:
    made = adapter(tmp_path / "one", pair(f"{ATTENTION}.qq_proj"))
    refused = cli("adapter", "convert", made, tmp_path / "mlx", "--format", "mlx", "--base", base)
    assert refused.code == 1 and "qq_proj.lora_A" in refused.err and not (tmp_path / "mlx").exists()
    fine = adapter(tmp_path / "two", pair())
    before = (made / "adapter_model.safetensors").read_bytes()
    full = cli("adapter", "convert", fine, made, "--format", "mlx", "--base", base)
    assert full.code == 2 and (made / "adapter_model.safetensors").read_bytes() == before
    (made / "notes.txt").write_text("mine")
    done = cli("adapter", "convert", fine, made, "--format", "mlx", "--base", base, "--overwrite", "--json")
    assert done.code == 0 and done.data["tensors"] == 2
    assert sorted(path.name for path in made.iterdir()) == ["adapter_config.json", "adapters.safetensors", "notes.txt"]


def test_the_base_is_the_one_that_the_config_names(base: Path, tmp_path: Path, cli: Cli) -> None:
    named = adapter(tmp_path / "one", pair(), base_model_name_or_path=str(base))
    assert cli("adapter", "convert", named, tmp_path / "mlx", "--format", "mlx").code == 0
    assert config(tmp_path / "mlx")["model"] == str(base)
    for name, values in {"two": {}, "three": {"base_model_name_or_path": "some/where"}}.items():
        lost = adapter(tmp_path / name, pair(), **values)
        refused = cli("adapter", "convert", lost, tmp_path / "none", "--format", "mlx")
        assert refused.code == 2 and "--base" in refused.err


def test_of_several_one_is_named(base: Path, tmp_path: Path) -> None:
    paths = [adapter(tmp_path / name, pair(seed=seed)) for seed, name in enumerate(("one", "two"), 1)]
    m = load(base, adapter=[(path, 1.0) for path in paths])
    with pytest.raises(UsageError, match="one of one, two"):
        m.save_adapter(tmp_path / "none")
    with pytest.raises(UsageError, match="'three'"):
        m.save_adapter(tmp_path / "none", "three")
    with pytest.raises(UsageError, match="format 'gguf'"):
        m.save_adapter(tmp_path / "none", "two", "gguf")  # type: ignore[arg-type]
    m.save_adapter(tmp_path / "again", "two")
    assert same(tmp_path / "again", paths[1]) and not same(tmp_path / "again", paths[0])
    with pytest.raises(UsageError, match="has no adapter"):
        load(base).save_adapter(tmp_path / "none")


def test_files_that_hold_other_tensors_by_now(base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair())
    m = load(base, adapter=made)
    adapter(made, pair(K, rows=16), target_modules=["k_proj"])
    with pytest.raises(CheckpointError, match="other tensors"):
        m.save_adapter(tmp_path / "again")
    m.save_adapter(tmp_path / "mlx", form="mlx")
    assert "model.layers.0.self_attn.q_proj.lora_a" in tensors(tmp_path / "mlx")


def test_values_beside_the_blocks_have_no_place(tmp_path: Path) -> None:
    from weightloom.engine import TensorSpec
    from weightloom.engine.planning.fresh import save_plan
    from weightloom.engine.planning.lifting import adapter_rules
    from weightloom.engine.saving.given_back import given_back
    from weightloom.rules import load_rules

    names = {f"lora_{side}.model.layers.0.mlp.experts.gate_up_proj" for side in "AB"}
    arrays = {name: mx.ones((1, 2, 4) if "_A" in name else (1, 6, 2)) for name in names}
    specs = {name: TensorSpec("F32", tuple(array.shape)) for name, array in arrays.items()}
    plan = save_plan(adapter_rules(load_rules("mixtral")), specs, {"num_local_experts": 1})
    with pytest.raises(NotInvertible, match="has values in rows"):
        given_back(plan, arrays)


def decomposed() -> Arrays:
    return pair() | {f"{Q}.lora_magnitude_vector": filled({"m": (32,)}, seed=6)["m"] + 2}


def test_lengths_of_rows_go_to_mlx_and_back(base: Path, tmp_path: Path, cli: Cli) -> None:
    made = adapter(tmp_path / "one", decomposed(), use_dora=True)
    stacked = converted(cli, base, made, tmp_path / "mlx", "mlx")
    assert config(stacked)["fine_tune_type"] == "dora"
    assert tensors(stacked)["model.layers.0.self_attn.q_proj.m"].shape == (32,)
    again = converted(cli, base, stacked, tmp_path / "peft", "peft")
    assert same(again, made) and config(again)["use_dora"] is True
    assert np.allclose(logits(load(base, adapter=stacked)), logits(load(base, adapter=made)), atol=1e-4)


def test_lengths_of_columns_have_no_place_in_mlx_lm_s_format(base: Path, tmp_path: Path) -> None:
    shapes = {
        f"{EMBEDDING}.lora_embedding_A": (2, 260),
        f"{EMBEDDING}.lora_embedding_B": (32, 2),
        f"{EMBEDDING}.lora_magnitude_vector": (32,),
    }
    m = load(base, adapter=adapter(tmp_path / "one", filled(shapes, seed=3), use_dora=True))
    with pytest.raises(PlanError, match=r"embed_tokens\.weight is brought to lengths of columns"):
        m.save_adapter(tmp_path / "mlx", form="mlx")


@pytest.mark.case("C59")
def test_factors_of_a_joined_stack_are_given_part_by_part(tmp_path: Path, cli: Cli) -> None:
    """C59: what was trained on gate and up as one has A for both, and for each its rows of B."""
    base = write_model(tmp_path / "base", "mixtral")
    place = "base_model.model.model.layers.1.mlp.experts"
    shapes = {f"{place}.lora_A.weight": (4 * 2, 32), f"{place}.lora_B.weight": (48, 2 * 4)}
    made = adapter(tmp_path / "one", filled(shapes, seed=3), target_parameters=["mlp.experts.gate_up_proj"])
    stacked = converted(cli, base, made, tmp_path / "mlx", "mlx")
    module = "model.layers.1.block_sparse_moe.switch_mlp"
    found = tensors(stacked)
    assert np.array_equal(found[f"{module}.gate_proj.lora_a"], found[f"{module}.up_proj.lora_a"])
    assert found[f"{module}.up_proj.lora_b"].shape == (4, 24, 2)
    peft = converted(cli, base, stacked, tmp_path / "peft", "peft")
    assert f"{place.replace('mlp', 'block_sparse_moe')}.3.w3.lora_B.weight" in tensors(peft)
    reference = logits(load(base, adapter=made))
    assert np.abs(reference - logits(load(base))).max() > 1e-2
    for each in (stacked, peft):
        assert np.allclose(logits(load(base, adapter=each)), reference, atol=1e-4)


def test_embeddings_that_peft_wrote_beside_their_factors_are_left_out(base: Path, tmp_path: Path) -> None:
    shapes = {f"{EMBEDDING}.lora_embedding_A": (2, 260), f"{EMBEDDING}.lora_embedding_B": (32, 2)}
    own = tensors(base)["model.embed_tokens.weight"]
    for name, place in (("one", f"{EMBEDDING}.base_layer.weight"), ("two", f"{EMBEDDING}.weight")):
        m = load(base, adapter=adapter(tmp_path / name, filled(shapes, seed=3) | {place: own}))
        done = m.save_adapter(tmp_path / f"mlx-{name}", form="mlx")
        assert any("embed_tokens.weight was left out" in note for note in done.notes)
        assert np.allclose(logits(load(base, adapter=tmp_path / f"mlx-{name}")), logits(m), atol=1e-4)
    other = adapter(tmp_path / "other", filled(shapes, seed=3) | {f"{EMBEDDING}.weight": own + 1})
    with pytest.raises(PlanError, match="is a whole tensor"):
        load(base, adapter=other).save_adapter(tmp_path / "none", form="mlx")


def test_of_a_family_that_has_rules_and_no_architecture(tmp_path: Path, cli: Cli) -> None:
    """Names of experts go through the rules all the same."""
    base = write_model(tmp_path / "base", "mixtral")
    content = json.loads((base / "config.json").read_text())
    content |= {"model_type": "minimax_m3_vl", "architectures": ["MiniMaxM3VLForConditionalGeneration"]}
    (base / "config.json").write_text(json.dumps(content))
    assert "no architecture for 'minimax_m3_vl' is installed" in cli("plan", base).out
    made = adapter(tmp_path / "one", peft_experts() | pair())
    stacked = converted(cli, base, made, tmp_path / "mlx", "mlx")
    assert tensors(stacked)["model.layers.1.block_sparse_moe.switch_mlp.up_proj.lora_b"].shape == (4, 24, 2)
    assert same(converted(cli, base, stacked, tmp_path / "peft", "peft"), made)
    assert cli("convert", base, tmp_path / "fused", "--adapter", f"{made}:0.5").code == 0


def test_from_python(base: Path, tmp_path: Path) -> None:
    from weightloom.runtime import convert_adapter

    made = adapter(tmp_path / "one", pair(), base_model_name_or_path=str(base))
    done = convert_adapter(made, tmp_path / "mlx", "mlx")
    assert done.tensors == 2 and all(path.is_file() for path in done.files)
    convert_adapter(tmp_path / "mlx", tmp_path / "peft", "peft", base=base)
    assert same(tmp_path / "peft", made)
