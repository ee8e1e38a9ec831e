"""To the mlx layout and back at the command line: what lies beside the weights, and what it gives back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Arrays, contents, halves, names_in, t0, write, write_sharded
from tests.runtime.support import T0_CONFIG, Cli, checkpoint

KEPT = "weightloom-kept.safetensors"
FREQUENCIES = "model.layers.0.self_attn.rotary_emb.inv_freq"
GEMMA3 = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "vision_config": {}}
GEMMA3_CONFIG: dict[str, Any] = {**GEMMA3, "text_config": {"model_type": "gemma3_text", "vocab_size": 16}}
NEXT_CONFIG: dict[str, Any] = {"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next"}
# A few tensors of a model are enough: by the rules alone.
OPEN = "--open-target"
NORM = "model.layers.0.input_layernorm.weight"


def gemma3() -> Arrays:
    """Some of its tensors: two of the text model, three that mlx-lm has no room for."""
    rng = np.random.default_rng(0)
    names = {
        "language_model.model.embed_tokens.weight": (16, 8),
        "language_model.model.layers.0.input_layernorm.weight": (8,),
        "vision_tower.vision_model.embeddings.patch_embedding.weight": (4, 3, 2, 2),
        "vision_tower.vision_model.post_layernorm.bias": (4,),
        "multi_modal_projector.mm_input_projection_weight": (4, 8),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in names.items()}


def qwen3_next() -> Arrays:
    """A norm and what tells both layouts apart by name."""
    rng = np.random.default_rng(1)
    expert = {f"model.layers.0.mlp.experts.{e}.{m}_proj.weight": (4, 8) for e in (0, 1) for m in ("gate", "up")}
    down = {f"model.layers.0.mlp.experts.{e}.down_proj.weight": (8, 4) for e in (0, 1)}
    names: dict[str, tuple[int, ...]] = {NORM: (8,), "model.norm.weight": (8,), **expert, **down}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in names.items()}


def there_and_back(cli: Cli, source: Path, tmp_path: Path) -> Path:
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx", OPEN).code == 0
    ran = cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf", OPEN)
    assert ran.code == 0, ran
    return tmp_path / "back"


def test_shards_index_metadata_config_and_dropped_tensors_come_back(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "t0"
    write_sharded(source, halves({**t0(), FREQUENCIES: np.arange(4, dtype=np.float32)}))
    (source / "config.json").write_text(json.dumps(T0_CONFIG, indent=3))
    (source / "tokenizer.json").write_text("{}")
    assert contents(there_and_back(cli, source, tmp_path)) == contents(source)
    assert FREQUENCIES not in names_in(tmp_path / "mlx")
    assert FREQUENCIES in names_in(tmp_path / "mlx" / KEPT)


def test_what_is_absent_in_it_is_kept_and_named(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    ran = cli("convert", source, tmp_path / "mlx", "--layout", "mlx", "--json")
    assert sorted(ran.data["kept"]) == sorted(name for name in gemma3() if not name.startswith("language_model."))
    assert ran.data["left_out"] == []
    assert sorted(names_in(tmp_path / "mlx")) == [
        "language_model.model.embed_tokens.weight",
        "language_model.model.layers.0.input_layernorm.weight",
    ]
    again = tmp_path / "again"
    assert cli("convert", tmp_path / "mlx", again, "--layout", "hf").code == 0
    assert (again / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert not (again / KEPT).exists()


def test_both_ends_of_a_tie_come_back_as_one_matrix(cli: Cli, tmp_path: Path) -> None:
    embeddings = t0()["model.embed_tokens.weight"]
    tied = {**T0_CONFIG, "tie_word_embeddings": True}
    source = checkpoint(tmp_path / "source", {**t0(), "lm_head.weight": embeddings}, tied)
    back = there_and_back(cli, source, tmp_path)
    assert (back / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert "lm_head.weight" not in names_in(tmp_path / "mlx")
    change(tmp_path / "mlx" / "model.safetensors", "model.embed_tokens.weight", mx.ones(embeddings.shape))
    assert cli("convert", tmp_path / "mlx", tmp_path / "third", "--layout", "hf").code == 0
    found = mx.load(str(tmp_path / "third" / "model.safetensors"))
    assert mx.all(found["lm_head.weight"] == 1) and mx.all(found["model.embed_tokens.weight"] == 1)


def test_a_norm_is_written_as_its_scale_and_comes_back_bit_for_bit(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", qwen3_next(), NEXT_CONFIG)
    back = there_and_back(cli, source, tmp_path)
    written = mx.load(str(tmp_path / "mlx" / "model.safetensors"))
    assert np.array_equal(np.array(written[NORM]), qwen3_next()[NORM] + np.float32(1))
    assert (back / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()


def test_a_norm_that_was_changed_since_is_computed_back(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", qwen3_next(), NEXT_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx", OPEN).code == 0
    change(tmp_path / "mlx" / "model.safetensors", NORM, mx.full((8,), 3.0))
    assert cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf", OPEN).code == 0
    found = mx.load(str(tmp_path / "back" / "model.safetensors"))
    assert np.all(np.array(found[NORM]) == 2.0)
    assert np.array_equal(np.array(found["model.norm.weight"]), qwen3_next()["model.norm.weight"])


def test_a_kept_file_of_other_weights_is_refused_by_name(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    write(tmp_path / "mlx" / "model.safetensors", {"language_model.model.norm.weight": np.ones(8, np.float32)})
    for command in ("inspect", "plan", "verify"):
        ran = cli(command, tmp_path / "mlx")
        assert ran.code == 1
        assert "belong to other weights" in ran.err and KEPT in ran.err


def test_a_damaged_kept_file_is_refused_by_name(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    write(tmp_path / "mlx" / KEPT, {"a": np.ones(1, np.float32)})
    ran = cli("inspect", tmp_path / "mlx")
    assert ran.code == 1 and "kept tensors" in ran.err and KEPT in ran.err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"source_layout":"hf"', b'"source_layout":"xf"'),
        (b'"vision_config"', b'"vision_confiG"'),
        (b'"format":"weightloom-kept"', b'"format":"weightloom-kepT"'),
    ],
)
def test_a_kept_file_that_was_changed_is_refused(cli: Cli, tmp_path: Path, old: bytes, new: bytes) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    raw = (tmp_path / "mlx" / KEPT).read_bytes()
    assert raw.count(old) == 1
    (tmp_path / "mlx" / KEPT).write_bytes(raw.replace(old, new))
    ran = cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf")
    assert ran.code == 1 and KEPT in ran.err and not (tmp_path / "back").exists()


def test_verify_and_inspect_know_it(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    assert cli("verify", tmp_path / "mlx").code == 0
    data = cli("inspect", tmp_path / "mlx", "--json").data
    assert data["layout"] == "mlx"
    assert data["kept"]["source_layout"] == "hf" and len(data["kept"]["tensors"]) == 3
    assert KEPT in cli("inspect", tmp_path / "mlx").out


def test_a_copy_takes_the_kept_file_along_and_another_dtype_says_what_is_lost(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    assert cli("convert", tmp_path / "mlx", tmp_path / "copy").code == 0
    assert contents(tmp_path / "copy") == contents(tmp_path / "mlx")
    ran = cli("convert", tmp_path / "mlx", tmp_path / "half", "--dtype", "bf16", "--json")
    assert len(ran.data["left_out"]) == 3
    assert not (tmp_path / "half" / KEPT).exists()
    assert cli("convert", tmp_path / "mlx", tmp_path / "no", "--layout", "hf", "--dtype", "bf16").code == 2


def test_new_weights_in_its_place_leave_no_kept_file(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    other = checkpoint(tmp_path / "other")
    assert cli("convert", other, tmp_path / "mlx", "--overwrite").code == 0
    assert not (tmp_path / "mlx" / KEPT).exists()


def test_a_changed_config_beside_the_weights_is_the_one_that_counts(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    config = tmp_path / "mlx" / "config.json"
    config.write_text(config.read_text().replace("gemma3_text", "another"))
    assert cli("convert", tmp_path / "mlx", tmp_path / "copy", "--max-shard-size", "1MB").code == 0
    assert (tmp_path / "copy" / "config.json").read_bytes() == config.read_bytes()
    ran = cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf", "--json")
    assert (tmp_path / "back" / "config.json").read_bytes() == (source / "config.json").read_bytes()
    assert "config.json was changed" in ran.data["notes"][0] and KEPT in ran.data["notes"][0]


def test_a_kept_file_that_cannot_be_read_is_no_absent_one(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    (tmp_path / "mlx" / KEPT).unlink()
    (tmp_path / "mlx" / KEPT).symlink_to("not-downloaded-yet")
    ran = cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf")
    assert ran.code in (1, 3) and KEPT in ran.err
    assert not (tmp_path / "back").exists()


def change(path: Path, name: str, value: mx.array) -> None:
    """Train one tensor, as it were: other values under the same name, metadata as they were."""
    arrays, metadata = mx.load(str(path), return_metadata=True)
    mx.save_safetensors(str(path), {**arrays, name: value.astype(arrays[name].dtype)}, metadata)


@pytest.mark.parametrize("said", [None, {"format": "pt"}, {"format": "mlx"}])
def test_names_say_which_layout_it_is(cli: Cli, tmp_path: Path, said: dict[str, str] | None) -> None:
    """Mixtral's layouts share no tensor with other values, so that no format matters."""
    stack = np.ones((2, 4, 8), np.float32)
    name = "model.layers.0.block_sparse_moe.switch_mlp"
    arrays = {f"{name}.gate_proj.weight": stack, f"{name}.up_proj.weight": stack, f"{name}.down_proj.weight": stack}
    folder = checkpoint(tmp_path / "source", arrays, {"model_type": "mixtral"})
    mx.save_safetensors(str(folder / "model.safetensors"), {n: mx.array(a) for n, a in arrays.items()}, said)
    assert cli("inspect", folder, "--json").data["layout"] == "mlx"


@pytest.mark.parametrize(("said", "layout"), [({"format": "pt"}, "hf"), ({"format": "mlx"}, "mlx")])
def test_the_format_decides_on_values_that_names_leave_open(
    cli: Cli, tmp_path: Path, said: dict[str, str], layout: str
) -> None:
    folder = checkpoint(tmp_path / "source", {NORM: np.ones(8, np.float32)}, NEXT_CONFIG)
    mx.save_safetensors(str(folder / "model.safetensors"), {NORM: mx.ones((8,))}, said)
    assert cli("inspect", folder, "--json").data["layout"] == layout


def test_values_that_nothing_decides_on_are_refused(cli: Cli, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "source", {NORM: np.ones(8, np.float32)}, NEXT_CONFIG)
    ran = cli("plan", folder)
    assert ran.code == 1 and NORM in ran.err and "--layout hf or mlx" in ran.err
    assert cli("plan", folder, "--layout", "mlx", OPEN).code == 0


def test_names_against_the_format_are_refused_where_values_differ(cli: Cli, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "source", qwen3_next(), NEXT_CONFIG)
    arrays = {name: mx.array(array) for name, array in qwen3_next().items()}
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, {"format": "mlx"})
    ran = cli("plan", folder)
    assert ran.code == 1 and "which layout this is in is not certain" in ran.err


def test_modules_that_stay_packed_are_said(cli: Cli, tmp_path: Path) -> None:
    name = "model.layers.0.self_attn.q_proj"
    packed, scales, biases = mx.quantize(mx.ones((8, 32)), 32, 4)
    arrays = {f"{name}.weight": packed, f"{name}.scales": scales, f"{name}.biases": biases}
    source = checkpoint(tmp_path / "source", {}, {"model_type": "qwen2"})
    mx.save_safetensors(str(source / "model.safetensors"), arrays, {"format": "mlx"})
    ran = cli("convert", source, tmp_path / "hf", "--layout", "hf")
    assert ran.code == 0 and "1 modules stay packed as MLX quantizes them" in ran.out + ran.err


def test_an_mlx_form_without_a_record_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    (tmp_path / "mlx" / KEPT).unlink()
    ran = cli("convert", tmp_path / "mlx", tmp_path / "again", "--layout", "mlx", "--json")
    assert ran.data["kept"] == [] and not (tmp_path / "again" / KEPT).exists()
    assert names_in(tmp_path / "again") == names_in(tmp_path / "mlx")
    said = "\n".join(cli("convert", tmp_path / "mlx", tmp_path / "hf", "--layout", "hf", "--json").data["notes"])
    assert "mlx-lm reads the text model alone" in said


def test_new_shards_keep_the_way_back(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx").code == 0
    assert cli("convert", tmp_path / "mlx", tmp_path / "cut", "--max-shard-size", "512B").code == 0
    assert (tmp_path / "cut" / "model.safetensors.index.json").exists()
    assert cli("convert", tmp_path / "cut", tmp_path / "back", "--layout", "hf").code == 0
    assert contents(tmp_path / "back") == contents(source)


def test_in_place_there_and_back(cli: Cli, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", gemma3(), GEMMA3_CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    before = contents(folder)
    assert cli("convert", folder, folder, "--layout", "mlx", "--overwrite").code == 0
    assert KEPT in contents(folder) and "tokenizer.json" in contents(folder)
    assert cli("convert", folder, folder, "--layout", "hf", "--overwrite").code == 0
    assert contents(folder) == before


def test_one_file_of_an_mlx_form_is_read_alone(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", gemma3(), GEMMA3_CONFIG)
    assert cli("convert", source, tmp_path / "mlx", "--layout", "mlx", "--max-shard-size", "512B").code == 0
    first = sorted((tmp_path / "mlx").glob("model-*.safetensors"))[0]
    data = cli("inspect", first, "--json").data
    assert data["layout"] == "mlx" and data["kept"] is None
    assert cli("inspect", tmp_path / "mlx" / KEPT).code == 0


@pytest.mark.parametrize(
    ("kinds", "pattern"),
    [("SSFSSFS", 3), ("FFF", 1), ("SSF", 3), ("FSS", None), ("SFSSF", None), ("SFSFF", None), ("SSS", None)],
)
def test_a_pattern_is_written_where_the_layers_have_one(
    cli: Cli, tmp_path: Path, kinds: str, pattern: int | None
) -> None:
    types = [{"S": "sliding_attention", "F": "full_attention"}[kind] for kind in kinds]
    config = {"model_type": "gemma3_text", "vocab_size": 16, "layer_types": types}
    names = {name.removeprefix("language_model."): array for name, array in list(gemma3().items())[:2]}
    assert cli("convert", checkpoint(tmp_path / "a", names, config), tmp_path / "mlx", "--layout", "mlx").code == 0
    assert json.loads((tmp_path / "mlx" / "config.json").read_text()).get("sliding_window_pattern") == pattern
