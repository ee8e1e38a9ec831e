"""Adapters fused into packed weights: the loss of each, the case where nothing arrives, and what is done then."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, const
from tests.cases.test_adapter_load import ATTENTION, Q, adapter, delta, logits, pair
from tests.runtime.adapting.test_fusing import NAME, arrays_in, fuse, packed, same_bits
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from tests.runtime.surgery.test_surgery_codes import with_codes
from weightloom.engine import Checkpoint, RuleSet, build_plan
from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.quantizing.quantization import BLOCK_MODES, Quantization
from weightloom.engine.quantizing.refitting import floats_of
from weightloom.runtime.adapting.fusing import Base, fused
from weightloom.runtime.adapting.losses import Loss, LossPolicy
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Converted, Order, convert
from weightloom.runtime.loading.loading import load

STEM = NAME.removesuffix(".weight")
FOUR_BITS = Quantization(4, 32)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The first query projection is in 4 bits: rows of 0 to 15, so that the scale is -1 and the bias 15."""
    plain = write_model(tmp_path / "plain", "llama")
    found = arrays_in(plain)
    rows = np.tile(np.arange(16, dtype=np.float32), (32, 2))
    mx.save_safetensors(str(plain / "model.safetensors"), {**found, NAME: mx.array(rows)}, {"format": "pt"})
    return packed(plain, tmp_path / "packed")


def small(folder: Path, size: float = 0.3) -> Path:
    """An adapter that adds `size` to the element in row 0, column 8."""
    a, b = const(0, 2, 32), const(0, 32, 2)
    a[0, 8], b[0, 0] = size, 0.5
    return adapter(folder, {f"{Q}.lora_A.weight": a, f"{Q}.lora_B.weight": b})


def unpacked(folder: Path, form: Quantization = FOUR_BITS, stem: str = STEM) -> Array:
    found = arrays_in(folder)
    return np.array(floats_of(tuple(found[f"{stem}.{part}"] for part in form.parts), form))


def only_loss(done: Converted) -> Loss:
    (loss,) = done.losses
    return loss


@pytest.mark.case("C58")
def test_a_change_that_would_be_rounded_away_is_noticed_and_the_layer_is_dense(base: Path, tmp_path: Path) -> None:
    """C58. Chosen: the layer stays unpacked, unless another way is asked for."""
    done = fuse(base, tmp_path / "fused", small(tmp_path / "one"))
    loss = only_loss(done)
    assert (loss.parameter, loss.share, loss.none_arrives) == (NAME, 1.0, True)
    assert (loss.form, loss.made) == ("4 bits in groups of 32 (affine)", "F32") and loss.left < 1e-5
    found, before = arrays_in(tmp_path / "fused"), arrays_in(base)
    wanted = unpacked(base)
    assert wanted[0, 8] == 8
    wanted[0, 8] = 8.3
    assert np.allclose(np.array(found[NAME]), wanted, atol=1e-6)
    assert found.keys() == before.keys() - {f"{STEM}.scales", f"{STEM}.biases"}
    config = json.loads((tmp_path / "fused" / "config.json").read_text())
    assert "quantization" not in config
    assert np.allclose(logits(load(tmp_path / "fused")), logits(load(base, adapter=small(tmp_path / "one"))), atol=1e-3)


@pytest.mark.case("C58")
def test_as_it_is_the_words_are_those_of_the_base(base: Path, tmp_path: Path) -> None:
    """C58: the words are identical, and the loss says so."""
    done = fuse(base, tmp_path / "fused", small(tmp_path / "one"), losses=LossPolicy("keep"))
    assert only_loss(done).none_arrives and only_loss(done).made == only_loss(done).form
    before, after = arrays_in(base), arrays_in(tmp_path / "fused")
    assert before.keys() == after.keys() and all(same_bits(before[name], after[name]) for name in before)


@pytest.mark.case("C58")
def test_with_more_bits_it_arrives(base: Path, tmp_path: Path) -> None:
    policy = LossPolicy("bits", 0.1)
    loss = only_loss(fuse(base, tmp_path / "fused", small(tmp_path / "one"), losses=policy))
    assert loss.none_arrives and loss.made == "8 bits in groups of 32 (affine)" and loss.left < 0.1
    wanted = unpacked(base)
    wanted[0, 8] = 8.3
    assert np.abs(unpacked(tmp_path / "fused", Quantization(8, 32)) - wanted).max() < 0.031
    config = json.loads((tmp_path / "fused" / "config.json").read_text())
    assert config["quantization"] == {"bits": 4, "group_size": 32, STEM: {"group_size": 32, "bits": 8}}
    assert np.allclose(logits(load(tmp_path / "fused")), logits(load(base, adapter=small(tmp_path / "one"))), atol=0.05)


@pytest.mark.case("C58")
def test_to_stop_names_the_layer_and_writes_nothing(base: Path, tmp_path: Path) -> None:
    with pytest.raises(
        PlanError, match=r"q_proj\.weight: 4 bits in groups of 32 \(affine\): 100\.00% of the change is lost"
    ):
        fuse(base, tmp_path / "fused", small(tmp_path / "one"), losses=LossPolicy("stop"))
    assert not (tmp_path / "fused").exists()


def test_what_arrives_stays_packed_and_what_does_not_change_stays_as_it_is(base: Path, tmp_path: Path) -> None:
    a, b = const(0, 2, 32), const(0, 32, 2)
    a[0], b[3, 0] = np.linspace(-3, 3, 32), 2
    made = adapter(tmp_path / "one", {f"{Q}.lora_A.weight": a, f"{Q}.lora_B.weight": b})
    loss = only_loss(fuse(base, tmp_path / "fused", made))
    before, after = arrays_in(base), arrays_in(tmp_path / "fused")
    assert before.keys() == after.keys()
    for part in ("weight", "scales", "biases"):
        name = f"{STEM}.{part}"
        same = [row for row in range(32) if np.array_equal(np.array(before[name][row]), np.array(after[name][row]))]
        assert set(range(32)) - {3} <= set(same)
    wanted = unpacked(base)
    change = 2 * b @ a
    left = np.linalg.norm(unpacked(tmp_path / "fused") - wanted - change) / np.linalg.norm(change)
    assert 0 < left < 0.2 and abs(loss.share - left) < 1e-5
    assert not loss.none_arrives and loss.made == loss.form


def test_a_share_that_is_too_much_is_asked_for(base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair())
    kept = only_loss(fuse(base, tmp_path / "kept", made))
    assert 0 < kept.share < 1 and kept.made == kept.form
    strict = only_loss(fuse(base, tmp_path / "strict", made, losses=LossPolicy("dense", kept.share / 2)))
    assert strict.share == kept.share and strict.made == "F32"
    exact = unpacked(base) + delta(pair(), 2)
    assert np.allclose(np.array(arrays_in(tmp_path / "strict")[NAME]), exact, atol=1e-4)


@pytest.mark.parametrize(("when", "most"), [("maybe", 1), ("dense", 0), ("dense", 1.5), ("dense", float("nan"))])
def test_a_policy_that_is_none(when: Any, most: float) -> None:
    with pytest.raises(UsageError):
        LossPolicy(when, most)


def test_whole_tensors_are_packed_as_what_they_replace(base: Path, tmp_path: Path) -> None:
    rows = pair()[f"{Q}.lora_B.weight"] @ pair()[f"{Q}.lora_A.weight"]
    made = adapter(tmp_path / "one", {f"base_model.model.{NAME}": rows})
    loss = only_loss(fuse(base, tmp_path / "fused", made))
    parts = tuple(mx.quantize(mx.array(rows), 32, 4))
    theirs = np.linalg.norm(np.array(floats_of(parts, FOUR_BITS)) - rows)
    assert np.linalg.norm(unpacked(tmp_path / "fused") - rows) <= theirs * 1.001
    assert loss.share < 0.2


def experts() -> Arrays:
    place = "base_model.model.model.layers.1.block_sparse_moe.experts"
    chance = np.random.default_rng(4)
    sizes = {"w1": (64, 32), "w3": (64, 32), "w2": (32, 64)}
    shapes = {
        f"{place}.{n}.{w}.lora_{side}.weight": (2, columns) if side == "A" else (rows, 2)
        for n in range(4)
        for w, (rows, columns) in sizes.items()
        for side in "AB"
    }
    return {name: chance.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def in_four_bits(plain: Path, folder: Path, layout: str = "mlx") -> Path:
    """Write a model in MLX's layout, and pack every matrix of its layers that divides into groups."""
    convert(plain, Order(folder, layout=layout), Wish())
    made: dict[str, mx.array] = {}
    for name, array in arrays_in(folder).items():
        if array.ndim < 2 or array.shape[-1] % 32 or "layers" not in name or "gate.weight" in name:
            made[name] = array
            continue
        stem = name.removesuffix(".weight")
        made[name], made[f"{stem}.scales"], made[f"{stem}.biases"] = mx.quantize(array, 32, 4)
    mx.save_safetensors(str(folder / "model.safetensors"), made, {"format": "mlx"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization"] = {"bits": 4, "group_size": 32}
    (folder / "config.json").write_text(json.dumps(config))
    for beside in folder.glob("weightloom-*"):
        beside.unlink()
    return folder


@pytest.mark.parametrize("when", ["keep", "bits", "dense"])
def test_stacks_of_packed_experts(when: Any, tmp_path: Path) -> None:
    """C59's last sentence: what is written is the changed weight, in each form, or nothing is."""
    config = config_of("mixtral", intermediate_size=64)
    quantized = in_four_bits(write_model(tmp_path / "plain", "mixtral", config), tmp_path / "packed")
    made = adapter(tmp_path / "one", experts())
    done = fuse(quantized, tmp_path / "fused", made, losses=LossPolicy(when, 0.01))
    stacks = [loss for loss in done.losses if "experts" in loss.parameter]
    assert sorted(loss.parameter.rsplit(".", 1)[-1] for loss in stacks) == ["down_proj", "gate_up_proj"]
    assert all(0.01 < loss.share < 0.2 and loss.left < (0.2 if when == "keep" else 0.01) for loss in stacks)
    beside, fused = logits(load(quantized, adapter=made)), logits(load(tmp_path / "fused"))
    plain = logits(load(quantized))
    assert np.linalg.norm(fused - beside) < (0.3 if when == "keep" else 0.02) * np.linalg.norm(plain - beside)


def test_the_command_prints_the_loss_of_each(cli: Cli, base: Path, tmp_path: Path) -> None:
    made = small(tmp_path / "one")
    done = cli("convert", base, tmp_path / "fused", "--adapter", made)
    line = f"fused: {NAME}: 4 bits in groups of 32 (affine): 100.00% of the change is lost, none of it arrives"
    assert done.code == 0 and line in done.out and "written as F32" in done.out
    data = cli("convert", base, tmp_path / "again", "--adapter", made, "--when-lost", "keep", "--json").data
    (loss,) = data["losses"]
    assert loss["parameter"] == NAME and loss["share"] == 1 and loss["none_arrives"] is True
    stopped = cli("convert", base, tmp_path / "none", "--adapter", made, "--when-lost", "stop")
    assert stopped.code == 1 and NAME in stopped.err and not (tmp_path / "none").exists()
    assert cli("convert", base, tmp_path / "none", "--adapter", made, "--max-loss", "0").code == 2


def test_a_zero_scale_leaves_packed_weights_alone(base: Path, tmp_path: Path) -> None:
    done = fuse(base, tmp_path / "fused", adapter(tmp_path / "one", {n: 0 * a for n, a in pair().items()}))
    assert only_loss(done).share == 0 and not only_loss(done).none_arrives
    before, after = arrays_in(base), arrays_in(tmp_path / "fused")
    assert all(same_bits(before[name], after[name]) for name in before)


def test_one_parameter_is_held_at_a_time(tmp_path: Path) -> None:
    """The measuring and the writing hold one group, however many there are."""
    peaks = []
    for layers in (2, 8):
        folder = tmp_path / str(layers)
        sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": layers, "vocab_size": 32}
        config = config_of("llama", **sizes, head_dim=64)
        quantized = in_four_bits(write_model(folder / "plain", "llama", config), folder / "packed")
        chance = np.random.default_rng(4)
        factors = {
            f"base_model.model.model.layers.{n}.mlp.down_proj.lora_{side}.weight": chance.standard_normal(
                shape, dtype=np.float32
            )
            for n in range(layers)
            for side, shape in (("A", (2, 512)), ("B", (256, 2)))
        }
        made = adapter(folder / "one", factors, target_modules=["down_proj"])
        gc.collect()
        mx.clear_cache()
        mx.reset_peak_memory()
        held = mx.get_active_memory()
        fuse(quantized, folder / "fused", made)
        peaks.append(mx.get_peak_memory() - held)
    # Six more layers are 3 MB of floats; what stays of them are the factors, 37 kB.
    assert peaks[1] < peaks[0] + 512 * 1024


@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8", "nvfp4"])
def test_blocks_of_small_floats(mode: str, tmp_path: Path) -> None:
    """They have no biases; a group keeps its words or is packed anew."""
    plain = write_model(tmp_path / "plain", "llama")
    found, how = arrays_in(plain), Quantization(*BLOCK_MODES[mode], mode)
    found[NAME], found[f"{STEM}.scales"] = mx.quantize(found[NAME], how.group_size, how.bits, mode)
    folder = tmp_path / "packed"
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), found, {"format": "mlx"})
    section = {"bits": how.bits, "group_size": how.group_size, "mode": mode}
    (folder / "config.json").write_text(json.dumps({**config_of("llama"), "quantization": section}))
    made = adapter(tmp_path / "one", pair())
    loss = only_loss(fuse(folder, tmp_path / "fused", made))
    wanted = unpacked(folder, how) + delta(pair(), 2)
    left = np.linalg.norm(unpacked(tmp_path / "fused", how) - wanted) / np.linalg.norm(delta(pair(), 2))
    assert 0 < loss.share < 0.3 and abs(loss.share - left) < 1e-5 and loss.made == str(how)
    dense = only_loss(fuse(folder, tmp_path / "dense", made, losses=LossPolicy("bits", loss.share / 2)))
    assert dense.made == "BF16"
    assert np.allclose(np.array(arrays_in(tmp_path / "dense")[NAME].astype(mx.float32)), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("layout", ["hf", "mlx"])
def test_codes_of_eight_bits_are_fused_as_floats(layout: str, tmp_path: Path) -> None:
    base, o_proj = with_codes(tmp_path / "base"), f"{ATTENTION}.o_proj"
    fuse(base, tmp_path / "fused", adapter(tmp_path / "one", pair(o_proj)), layout=layout)
    convert(base, Order(tmp_path / "floats", layout="mlx"), Wish())
    name = "model.layers.0.self_attn.o_proj.weight"
    before, after = (np.array(arrays_in(tmp_path / n)[name].astype(mx.float32)) for n in ("floats", "fused"))
    assert np.allclose(after, before + delta(pair(o_proj), 2, o_proj), atol=0.1, rtol=1e-2)


def test_what_is_packed_in_no_way_that_is_known_is_refused_by_name(tmp_path: Path) -> None:
    arrays = {NAME: mx.zeros((32, 32), mx.uint8), f"{NAME}_scale_inv": mx.ones((2, 2))}
    plan = build_plan(Checkpoint.from_arrays(arrays), RuleSet(()))
    made = adapter(tmp_path / "one", pair())
    with pytest.raises(UsageError, match=r"q_proj\.weight' are packed, and not as MLX"):
        fused(Base(plan, lambda layout: RuleSet(()), {}), [(made, 1.0)], LossPolicy())
