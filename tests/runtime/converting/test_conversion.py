"""convert, at the command line. Cases C73, C75; C29 and C30 in a named layout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import INDEX, const, contents, halves, names_in, t0, tm, tm_fused, write, write_sharded
from tests.runtime.support import T0_CONFIG, Cli, checkpoint

SIDE = {
    "generation_config.json": b'{"eos_token_id": 2}',
    "preprocessor_config.json": b"{ }",
    "added_tokens.json": b"{}\n",
    "tokenizer.json": b'{"version": "1.0"}',
    "chat_template.jinja": b"{{ messages }}",
    "modeling_mine.py": b"raise SystemExit('never run')",
    "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
}
OLD = {
    "hf_quant_config.json": b"{}",
    "quantize_config.json": b"{}",
    "pytorch_model.bin": b"x",
    "pytorch_model.bin.index.json": b"{}",
    "onnx/model.onnx": b"x",
    "model.gguf": b"GGUF",
}


def put(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def arrays_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in folder.glob("*.safetensors"):
        found |= mx.load(str(path))
    return found


def same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return sorted(found) == sorted(wanted) and all(np.array_equal(np.array(found[n]), wanted[n]) for n in wanted)


@pytest.mark.case("C75")
@pytest.mark.parametrize("layout", ["original", "canonical", "hf"])
def test_c75_side_files_travel_and_what_describes_the_old_weights_does_not(
    cli: Cli, tmp_path: Path, layout: str
) -> None:
    """C75. Chosen: hf_quant_config.json stays behind in every layout, and the output names it."""
    source, target = tmp_path / "t0", tmp_path / "out"
    write_sharded(source, halves(t0()))
    put(source, {**SIDE, **OLD, "config.json": json.dumps(T0_CONFIG, indent=3).encode()})
    ran = cli("convert", source, target, "--layout", layout, "--max-shard-size", "1MB")
    assert ran.code == 0
    found = contents(target)
    config = (source / "config.json").read_bytes()
    assert {name: found.pop(name) for name in SIDE} == SIDE
    assert found.pop("config.json") == config
    assert sorted(found) == ["model.safetensors"]
    assert all(f"left behind: {name} (" in ran.out for name in OLD)
    assert same(arrays_of(target), t0())


def test_the_original_layout_is_the_same_files(cli: Cli, tmp_path: Path) -> None:
    source, target = tmp_path / "t0", tmp_path / "out"
    write_sharded(source, halves(t0()))
    put(source, {"config.json": json.dumps(T0_CONFIG).encode()})
    assert cli("convert", source, target).code == 0
    assert contents(target) == contents(source)


def test_a_shard_size_cuts_new_shards_with_the_same_tensors(cli: Cli, tmp_path: Path) -> None:
    source, target = checkpoint(tmp_path / "t0"), tmp_path / "out"
    ran = cli("convert", source, target, "--max-shard-size", "1kB", "--json")
    assert ran.code == 0 and len(ran.data["files"]) > 2 and (target / INDEX).exists()
    assert same(arrays_of(target), t0())
    assert cli("verify", target).code == 0


def test_an_unknown_architecture_can_be_cut_anew(cli: Cli, tmp_path: Path) -> None:
    """Rules are needed for another layout only."""
    source = checkpoint(tmp_path / "x", {"a": const(1, 4)}, {"model_type": "never heard of"})
    assert cli("convert", source, tmp_path / "out").code == 0
    ran = cli("convert", source, tmp_path / "other", "--layout", "canonical")
    assert ran.code == 1 and "never heard of" in ran.err


def test_experts_there_and_back(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "moe", tm(4), {"model_type": "qwen2_moe"})
    there, back = tmp_path / "there", tmp_path / "back"
    assert cli("convert", source, there, "--layout", "canonical").code == 0
    assert same(arrays_of(there), tm_fused(4))
    assert cli("convert", source, back, "--layout", "hf").code == 0
    assert same(arrays_of(back), tm(4))
    again = tmp_path / "again"
    ran = cli("convert", there, again, "--layout", "hf")
    assert ran.code == 0, ran.err
    assert same(arrays_of(again), tm(4))


@pytest.mark.case("C29")
def test_a_named_layout_writes_one_copy_of_a_tie(cli: Cli, tmp_path: Path) -> None:
    arrays = t0()
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    source = checkpoint(tmp_path / "t0", arrays, {**T0_CONFIG, "tie_word_embeddings": True})
    assert cli("convert", source, tmp_path / "original").code == 0
    assert "lm_head.weight" in names_in(tmp_path / "original")
    for layout in ("hf", "canonical"):
        ran = cli("convert", source, tmp_path / layout, "--layout", layout, "--json")
        assert ran.code == 0, ran.err
        assert names_in(tmp_path / layout) == set(arrays) - {"lm_head.weight"}
        assert ran.data["left_out"] == ["lm_head.weight"]


@pytest.mark.parametrize(("name", "type_name"), [("bf16", mx.bfloat16), ("f16", mx.float16)])
@pytest.mark.parametrize("layout", ["original", "hf"])
def test_a_cast_changes_the_field_that_names_the_dtype_and_no_other(
    cli: Cli, tmp_path: Path, name: str, type_name: mx.Dtype, layout: str
) -> None:
    # A config from which no module is built, so that a tensor more is none too many.
    config = {"model_type": "llama", "torch_dtype": "float32"}
    arrays = {**t0(), "ids": np.arange(3, dtype=np.int32)}
    source, target = checkpoint(tmp_path / "t0", arrays, config), tmp_path / "out"
    raw = (source / "config.json").read_text()
    assert cli("convert", source, target, "--dtype", name, "--layout", layout).code == 0
    found = arrays_of(target)
    assert found.pop("ids").dtype == mx.int32
    for tensor, array in t0().items():
        assert mx.array_equal(found[tensor], mx.array(array).astype(type_name)), tensor
    wanted = raw.replace('"float32"', '"bfloat16"' if name == "bf16" else '"float16"')
    assert (target / "config.json").read_text() == wanted != raw


def test_a_widening_cast_comes_back(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "t0", {"a": np.array([1.5, -2], dtype=np.float16)}, {"model_type": "llama"})
    assert cli("convert", source, tmp_path / "wide", "--dtype", "f32").code == 0
    assert arrays_of(tmp_path / "wide")["a"].dtype == mx.float32
    assert cli("convert", tmp_path / "wide", tmp_path / "back", "--dtype", "f16").code == 0
    assert same(arrays_of(tmp_path / "back"), {"a": np.array([1.5, -2], dtype=np.float16)})


def test_keep_dtype_rules_are_obeyed(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "t0")
    rules = tmp_path / "keep.yaml"
    rules.write_text("schema: 1\nfamily: keep\nlayouts:\n  hf:\n    rules:\n      - keep_dtype: ['norm\\.weight']\n")
    for layout in ("original", "canonical"):
        ran = cli("convert", source, tmp_path / layout, "--dtype", "bf16", "--rules", rules, "--layout", layout)
        assert ran.code == 0, ran.err
        found = arrays_of(tmp_path / layout)
        assert {n for n, a in found.items() if a.dtype == mx.float32} == {n for n in found if "norm.weight" in n}


@pytest.mark.case("C73")
def test_c73_no_old_shard_is_left(cli: Cli, tmp_path: Path) -> None:
    """C73: over three old shards, the files are exactly those of the new index; other files stay."""
    source, target = checkpoint(tmp_path / "t0"), tmp_path / "out"
    arrays = list(t0().items())
    write_sharded(target, [dict(arrays[:5]), dict(arrays[5:9]), dict(arrays[9:])])
    put(target, {"notes.txt": b"mine"})
    ran = cli("convert", source, target, "--max-shard-size", "3000", "--layout", "canonical")
    assert ran.code == 2 and "--overwrite" in ran.err
    ran = cli("convert", source, target, "--max-shard-size", "3000", "--layout", "canonical", "--overwrite", "--json")
    assert ran.code == 0
    index = json.loads((target / INDEX).read_bytes())
    shards = {path.name for path in target.glob("*.safetensors")}
    assert shards == set(index["weight_map"].values()) and len(shards) == 2
    assert (target / "notes.txt").read_bytes() == b"mine"
    assert same(arrays_of(target), t0())


def test_where_the_target_may_not_be(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "a" / "t0")
    before = contents(tmp_path)
    for target, text in (
        (source, "--overwrite"),
        (source / "inside", "inside the source's directory"),
        (tmp_path / "a", "holds the source's directory"),
        (tmp_path / "a" / "." / "t0", "own directory"),
    ):
        ran = cli("convert", source, target)
        assert ran.code == 2 and text in ran.err
        if target.name != "t0":
            assert cli("convert", source, target, "--overwrite").code == 2
    (tmp_path / "file").write_text("x")
    assert cli("convert", source, tmp_path / "file").code == 2
    (tmp_path / "file").unlink()
    assert contents(tmp_path) == before


def test_in_place_with_overwrite(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "moe", tm(2), {"model_type": "qwen2_moe", "dtype": "float32"})
    put(path, SIDE)
    ran = cli("convert", path, path, "--overwrite", "--layout", "canonical", "--dtype", "bf16")
    assert ran.code == 0, ran.err
    found = contents(path)
    assert {name: found[name] for name in SIDE} == SIDE
    assert json.loads(found["config.json"])["dtype"] == "bfloat16"
    assert set(arrays_of(path)) == set(tm_fused(2))


def test_an_unknown_layout_and_a_lossy_rule_leave_nothing(cli: Cli, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "t0")
    ran = cli("convert", source, tmp_path / "out", "--layout", "nosuch")
    assert ran.code == 2 and "one of original, canonical, " in ran.err and "'nosuch' is known for " in ran.err
    assert cli("convert", source, tmp_path / "out", "--from-layout", "nosuch", "--layout", "canonical").code == 2
    assert not (tmp_path / "out").exists()


def test_a_file_alone_takes_no_neighbours(cli: Cli, tmp_path: Path) -> None:
    source = write(tmp_path / "in" / "alone.safetensors", t0())
    put(tmp_path / "in", {"letter.txt": b"private"})
    assert cli("convert", source, tmp_path / "out").code == 0
    assert sorted(contents(tmp_path / "out")) == ["alone.safetensors"]
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (source, tmp_path / "out" / source.name)}
    assert len(digests) == 1
