"""Casts: as asked, as the device wants, never what a rule or the family forbids; the same bytes on every route."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.engine.raw_files import entry
from tests.engine.raw_files import write as write_raw
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine import KeepDtype, RuleSet, Sharding
from weightloom.engine.errors import UsageError
from weightloom.plugins import Architecture, PluginManager, hookimpl
from weightloom.plugins.architectures.llama import LLAMA
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.preparing.casting import casting
from weightloom.runtime.preparing.device_dtype import Device, lacks_bf16

M1: Device = {"architecture": "applegpu_g13s", "device_name": "Apple M1 Max"}
M4: Device = {"architecture": "applegpu_g16g", "device_name": "Apple M4"}
TURING: Device = {"architecture": "sm_75", "compute_capability_major": 7, "device_name": "Tesla T4"}
H200: Device = {"architecture": "sm_90a", "compute_capability_major": 9, "device_name": "NVIDIA H200"}
CPU: Device = {"architecture": "x86_64", "device_name": "some CPU"}
NORMS = "keep_dtype: ['norm\\.weight']"
FRAGILE = replace(LLAMA, name="fragile", keeps_bf16=True)


class Offering:
    """Offers one architecture."""

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = architecture

    @hookimpl
    def weightloom_architectures(self) -> Iterable[Architecture]:
        return [self.architecture]


def fragile_manager() -> PluginManager:
    manager = PluginManager(group="weightloom.none")
    manager.register(Offering(FRAGILE))
    return manager


def stored(path: Path) -> dict[str, mx.array]:
    return dict(mx.load(str(path / "model.safetensors")))  # type: ignore[arg-type]


def with_dtypes(path: Path, dtype: mx.Dtype, others: Mapping[str, mx.Dtype] | None = None) -> Path:
    """Give a model's tensors another dtype, in place."""
    wanted = others or {}
    arrays = {name: array.astype(wanted.get(name, dtype)) for name, array in stored(path).items()}
    mx.save_safetensors(str(path / "model.safetensors"), arrays)
    return path


def keeping(folder: Path) -> Path:
    """Write a rule file that keeps the norms as they are."""
    file = folder / "keep.yaml"
    file.write_text(f"schema: 1\nfamily: keep\nlayouts:\n  hf:\n    rules:\n      - {NORMS}\n")
    return file


def same(one: Mapping[str, mx.array], other: Mapping[str, mx.array]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and bool(mx.array_equal(one[name], other[name])) for name in one
    )


@pytest.mark.parametrize(("device", "lacks"), [(M1, True), (M4, False), (TURING, True), (H200, False), (CPU, False)])
def test_which_devices_lack_bfloat16(device: Device, lacks: bool) -> None:
    assert lacks_bf16(device) is lacks
    assert not lacks_bf16({})


@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_rules_that_keep_a_dtype_are_obeyed_on_every_route_with_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Loaded, lazily, cut among ranks, converted to the layout or file by file: one set of bytes."""
    path, rules = write_model(tmp_path / "in", "llama"), keeping(tmp_path)
    eager = load(path, name, rules=rules)
    kept = {key for key, array in parameters(eager.model).items() if array.dtype == mx.float32}
    assert kept == {key for key in parameters(eager.model) if key.endswith("norm.weight")}
    assert same(parameters(eager.model), parameters(load(path, name, rules=rules, lazy=True).model))
    for layout in ("hf", "original", "canonical"):
        order = Order(tmp_path / layout, layout=layout, dtype=name.upper())
        done = convert(path, order, Wish(rules=str(rules)))
        assert same(stored(tmp_path / layout), parameters(eager.model))
        assert any(note.startswith("keep their dtype: ") and "keep.yaml:6" in note for note in done.notes)
    eager.save(tmp_path / "saved", layout="hf")
    assert same(stored(tmp_path / "saved"), parameters(eager.model))
    (said,) = [note for note in eager.report.notes if note.startswith("keep their dtype: ")]
    assert said in eager.notes and "model.norm.weight" in said and "keep.yaml:6" in said


def test_each_ranks_part_is_cast_as_the_whole_is(tmp_path: Path) -> None:
    path, rules = write_model(tmp_path / "in", "llama"), keeping(tmp_path)
    whole = parameters(load(path, "f16", rules=rules).model)
    cuts = {r"mlp\.(gate|up)_proj": "column", r"mlp\.down_proj": "row", ".*": "replicate"}
    plan = load(path, rules=rules).plan
    cast = casting("F16", plan, LLAMA)
    ranks = [cast.of(plan).load(Sharding(rank, 2, cuts)) for rank in range(2)]
    for name, array in whole.items():
        axis = 1 if "down_proj" in name else 0 if "mlp." in name else None
        found = ranks[0][name] if axis is None else mx.concatenate([rank[name] for rank in ranks], axis)
        assert found.dtype == array.dtype and mx.array_equal(found, array), name


BIAS = "mlp.gate.e_score_correction_bias"


@pytest.mark.case("C51")
@pytest.mark.parametrize("layout", ["original", "hf", "canonical"])
def test_c51_a_router_bias_stays_as_it_is(cli: Cli, tmp_path: Path, layout: str) -> None:
    """C51: F32, bit-equal, through convert, and converting what was converted."""
    values = np.array([6.99, 7.0, 7.01, 7.06], np.float32)
    config = {"model_type": "glm4_moe", "num_hidden_layers": 1, "num_nextn_predict_layers": 0, "n_routed_experts": 4}
    name, other = f"model.layers.0.{BIAS}", "model.norm.weight"
    source = tmp_path / "in"
    source.mkdir()
    write(source / "model.safetensors", {name: values, other: np.ones(8, np.float32)})
    (source / "config.json").write_text(json.dumps(config))
    for start, target in ((source, tmp_path / "once"), (tmp_path / "once", tmp_path / "twice")):
        ran = cli("convert", start, target, "--dtype", "bf16", "--layout", layout, "--open-target")
        assert ran.code == 0, ran.err
        found = stored(target)
        assert found[name].dtype == mx.float32 and np.array_equal(np.array(found[name]), values)
        assert found[other].dtype == mx.bfloat16
    assert BIAS in cli("convert", source, tmp_path / "third", "--dtype", "bf16", "--json").out


def test_a_family_that_keeps_bfloat16_has_no_float16(tmp_path: Path) -> None:
    path = with_dtypes(write_model(tmp_path / "in", "llama"), mx.bfloat16, {"model.norm.weight": mx.float32})
    m = load(path, "float16", manager=fragile_manager())
    assert {array.dtype for array in parameters(m.model).values()} == {mx.bfloat16} and m.cast == "BF16"
    assert any("float16 was asked for, which fragile has no range for" in note for note in m.report.notes)
    m.save(tmp_path / "out", layout="hf")
    assert json.loads((tmp_path / "out/config.json").read_text())["torch_dtype"] == "bfloat16"
    plain = load(path, "float16")
    assert {array.dtype for array in parameters(plain.model).values()} == {mx.float16}
    assert {array.dtype for array in parameters(load(path, "float32", manager=fragile_manager()).model).values()} == {
        mx.float32
    }


@pytest.mark.parametrize(
    ("device", "architecture", "dtype", "said"),
    [
        (M1, LLAMA, "F16", "bfloat16 is made float16, as Apple M1 Max lacks it: 29 parameters"),
        (TURING, LLAMA, "F16", "as Tesla T4 lacks it"),
        (H200, LLAMA, "BF16", "bfloat16 stays: NVIDIA H200 gains nothing"),
        (CPU, LLAMA, "BF16", "bfloat16 stays: some CPU gains nothing"),
        (M1, FRAGILE, "BF16", "bfloat16 stays, though Apple M1 Max lacks it: fragile"),
    ],
)
def test_the_device_decides_on_bfloat16_alone(
    tmp_path: Path, device: Device, architecture: Architecture, dtype: str, said: str
) -> None:
    norm = "model.norm.weight"
    plan = load(with_dtypes(write_model(tmp_path / "in", "llama"), mx.bfloat16, {norm: mx.float32})).plan
    cast = casting("auto", plan, architecture, lambda: device)
    assert said in cast.notes[0]
    made = cast.of(plan)
    assert {name for name, spec in made.params.items() if spec.dtype == "F32"} == {norm}
    assert {spec.dtype for name, spec in made.params.items() if name != norm} == {dtype}
    assert cast.notes[0] in made.report.notes


def test_auto_where_nothing_is_bfloat16_or_the_device_has_it_changes_nothing(tmp_path: Path) -> None:
    path = write_model(tmp_path / "in", "llama")
    m = load(path, "auto")
    assert m.cast is None and m.report.notes == () and same(parameters(m.model), stored(path))
    with_dtypes(path, mx.bfloat16)
    m = load(path, "auto")
    m.save(tmp_path / "out")
    assert same(stored(tmp_path / "out"), stored(path))


def test_a_plugins_own_rules_keep_dtypes_too(tmp_path: Path) -> None:
    path = write_model(tmp_path / "in", "llama")
    manager = PluginManager(group="weightloom.none")
    manager.register(Offering(replace(LLAMA, rules=RuleSet([KeepDtype(r"lm_head\.")]))))
    m = load(path, "bfloat16", manager=manager)
    assert {name for name, array in parameters(m.model).items() if array.dtype == mx.float32} == {"lm_head.weight"}


def test_an_unknown_dtype_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="automatic"):
        load(tmp_path, "automatic")


def test_the_written_config_names_the_dtype_once_more(tmp_path: Path) -> None:
    """What a cast writes is read back without a repair, and with that dtype."""
    changes: dict[str, Any] = {"torch_dtype": "fp32"}
    path = write_model(tmp_path / "in", "llama", config_of("llama", **changes))
    convert(path, Order(tmp_path / "out", dtype="F16"), Wish())
    m = load(tmp_path / "out")
    assert m.config["torch_dtype"] == "float16" and m.report.repaired == ()


def test_doubles_that_a_cast_leaves_alone_are_named(cli: Cli, tmp_path: Path) -> None:
    """Rules without an architecture take them; who asks for bfloat16 hears that these are none."""
    header = {"model.norm.weight": entry("F64", [2], 0, 16), "model.embed_tokens.weight": entry("F32", [2, 2], 16, 32)}
    (tmp_path / "in").mkdir()
    write_raw(tmp_path / "in" / "model.safetensors", header, bytes(32))
    (tmp_path / "in" / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    done = cli("convert", tmp_path / "in", tmp_path / "out", "--layout", "hf", "--dtype", "bf16", "--json")
    assert done.code == 0 and done.data["notes"] == ["F64 is not cast: model.norm.weight"]
