"""Cases C16, C17, C18 on the rules that ship: what a file's layout decides, end to end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Arrays, assert_same, const, contents, filled, iota, write
from weightloom.engine import CheckpointError
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.choosing.layout_seen import choose_opened
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.inspecting.reading import plan_opened
from weightloom.runtime.opening.opening import open_path

# The rules alone: a tensor or two of a model are enough.
OPEN = Wish(open_target=True)


def checkpoint(folder: Path, arrays: Arrays, config: Mapping[str, Any], said: str | None) -> Path:
    """A directory of one file and a config; `said` is what its metadata says of its format."""
    write(folder / "model.safetensors", arrays, None if said is None else {"format": said})
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def canonical(folder: Path, wish: Wish | None = None) -> dict[str, mx.array]:
    """The parameters that a directory leads to, in the layout that it shows."""
    with open_path(folder) as opened:
        plan, _ = plan_opened(opened, choose_opened(opened, wish or OPEN, str(folder)))
        return plan.load()


def arrays_in(folder: Path) -> dict[str, mx.array]:
    found = mx.load(str(folder / "model.safetensors"))
    assert isinstance(found, dict)
    return found


MAMBA = {"model_type": "mamba", "expand": 2, "hidden_size": 2}
CONV = "backbone.layers.0.mixer.conv1d.weight"


@pytest.mark.case("C16")
@pytest.mark.parametrize(("turned", "said"), [(False, "pt"), (True, "mlx"), (False, "mlx")])
def test_c16_a_convolution_is_turned_once(turned: bool, said: str, tmp_path: Path) -> None:
    """C16: files A, B and C hold one convolution, and each is written in mlx-lm's form alike."""
    torch = iota(4, 1, 3)
    held = torch.transpose(0, 2, 1) if turned else torch
    source = checkpoint(tmp_path / "in", {CONV: held, "backbone.norm_f.weight": const(1, 2)}, MAMBA, said)
    assert np.array_equal(np.array(canonical(source)[CONV]), torch)
    for layout, wanted in (("hf", torch), ("mlx", torch.transpose(0, 2, 1))):
        convert(source, Order(tmp_path / layout, layout), OPEN)
        assert np.array_equal(np.array(arrays_in(tmp_path / layout)[CONV]), wanted)


@pytest.mark.case("C16")
def test_c16_without_metadata_it_is_refused_or_as_asked(tmp_path: Path) -> None:
    """C16. Chosen: what neither names nor metadata decide is refused by name; asked, the layout decides."""
    turned = iota(4, 1, 3).transpose(0, 2, 1)
    source = checkpoint(tmp_path / "in", {CONV: turned}, MAMBA, None)
    with pytest.raises(CheckpointError, match=r"which layout this is in is not certain.*conv1d.*"):
        canonical(source)
    assert np.array_equal(np.array(canonical(source, replace(OPEN, layout="mlx"))[CONV]), iota(4, 1, 3))


QWEN = {"model_type": "qwen3_next", "num_hidden_layers": 1, "num_experts": 2, "tie_word_embeddings": False}
AT = "model.layers.0"
NORMS = [f"{AT}.input_layernorm.weight", f"{AT}.post_attention_layernorm.weight", "model.norm.weight"]
NORMS += [f"{AT}.self_attn.q_norm.weight", f"{AT}.self_attn.k_norm.weight"]
SCALED = f"{AT}.linear_attn.norm.weight"
MTP = "mtp.layers.0.input_layernorm.weight"


def qwen(norm: float, mtp: float, last: bool) -> Arrays:
    """Its norms, one convolution with its channels first or last, and the norm of an MTP layer."""
    conv = iota(4, 1, 3)
    return {
        **{name: const(norm, 2) for name in NORMS},
        SCALED: const(1, 2),
        f"{AT}.linear_attn.conv1d.weight": conv.transpose(0, 2, 1) if last else conv,
        MTP: const(mtp, 2),
    }


RAW, CONVERTED, MIXED = qwen(0, 0, False), qwen(1, 1, True), qwen(1, 0, True)


@pytest.mark.case("C17")
@pytest.mark.parametrize(
    ("file", "said"), [(RAW, "pt"), (CONVERTED, "mlx"), (MIXED, "mlx")], ids=["raw", "converted", "mixed"]
)
def test_c17_every_scale_is_one(file: Arrays, said: str, tmp_path: Path) -> None:
    """C17: the effective scale, one plus the parameter, is 1.0 in A, B and C; the norm of states is left alone."""
    found = canonical(checkpoint(tmp_path, file, QWEN, said))
    assert all(np.array(1 + found[name]).tolist() == [1.0, 1.0] for name in NORMS)
    assert np.array(found[SCALED]).tolist() == [1.0, 1.0]
    assert MTP not in found
    assert np.array_equal(np.array(found[f"{AT}.linear_attn.conv1d.weight"]), iota(4, 1, 3))


@pytest.mark.case("C17")
def test_c17_one_is_added_once_however_often_it_is_written(tmp_path: Path) -> None:
    """C17: our own save, read and written again, is as it was; and the raw file comes back byte for byte."""
    raw = checkpoint(tmp_path / "raw", RAW | filled({NORMS[0]: (2,)}), QWEN, "pt")
    before = raw
    for turn in range(3):
        convert(before, Order(tmp_path / f"mlx{turn}", "mlx"), OPEN)
        before = tmp_path / f"mlx{turn}"
        written = arrays_in(before)
        assert all(np.array(written[name]).tolist() == [1.0, 1.0] for name in NORMS[1:])
        assert np.array(canonical(before)["model.norm.weight"]).tolist() == [0.0, 0.0]
    convert(before, Order(tmp_path / "back", "hf"), OPEN)
    assert contents(tmp_path / "back") == contents(raw)


@pytest.mark.case("C17")
@pytest.mark.parametrize("file", [MIXED, RAW], ids=["mixed", "raw"])
def test_c17_without_a_word_it_is_refused(file: Arrays, tmp_path: Path) -> None:
    """C17. Chosen: no shape is asked; what neither a record nor the metadata nor a name decides is refused."""
    with pytest.raises(CheckpointError) as caught:
        canonical(checkpoint(tmp_path, file, QWEN, None))
    assert "norm.weight" in str(caught.value) and "--layout hf or mlx" in str(caught.value)


@pytest.mark.case("C17")
def test_c17_a_name_that_one_form_alone_has_decides(tmp_path: Path) -> None:
    """C17: stacked experts are mlx-lm's, single ones the published form's, whatever the norms are."""
    for norm, name, shape in ((1, "switch_mlp.down_proj", (2, 2, 2)), (0, "experts.0.down_proj", (2, 2))):
        expert = {f"{AT}.mlp.{name}.weight": filled({"w": shape})["w"]}
        found = canonical(checkpoint(tmp_path / str(norm), qwen(norm, 0, bool(norm)) | expert, QWEN, None))
        assert np.array(found["model.norm.weight"]).tolist() == [0.0, 0.0]


T1 = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "tie_word_embeddings": False}
PACKED = {"quantization": {"group_size": 32, "bits": 4}}


def packed(stem: str) -> Arrays:
    rng = np.random.default_rng(3)
    return {
        f"{stem}.weight": rng.integers(0, 2**32, (64, 8), dtype=np.uint32),
        f"{stem}.scales": rng.standard_normal((64, 2), dtype=np.float32),
        f"{stem}.biases": rng.standard_normal((64, 2), dtype=np.float32),
    }


@pytest.mark.case("C18")
@pytest.mark.parametrize("said", ["mlx", "pt", None])
def test_c18_renames_run_whatever_the_metadata_says(said: str | None, tmp_path: Path) -> None:
    """C18: the caller's rename is applied to a quantized file that says it is MLX's."""
    source = checkpoint(tmp_path / "in", packed("encoder.layers.0.self_attn.q_proj"), T1 | PACKED, said)
    rules = tmp_path / "mine.yaml"
    rules.write_text(
        "schema: 1\nfamily: mine\nlayouts: {hf: {rules: [{rename: {from: '^encoder', to: 'model'}, why: 'ours'}]}}\n"
    )
    found = canonical(source, Wish(rules=str(rules), open_target=True))
    assert_same(found, packed("model.layers.0.self_attn.q_proj"))


@pytest.mark.case("C18")
@pytest.mark.parametrize("said", ["mlx", "pt", None])
def test_c18_so_do_those_that_ship(said: str | None, tmp_path: Path) -> None:
    """C18: a multimodal model's text in mlx-lm's names, quantized."""
    config = {"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text"}} | PACKED
    name = "layers.0.mlp.down_proj"
    found = canonical(checkpoint(tmp_path, packed(f"language_model.model.{name}"), config, said))
    assert_same(found, packed(f"model.language_model.{name}"))


@pytest.mark.case("C17")
def test_c17_what_is_computed_back_is_said(tmp_path: Path) -> None:
    """C17: from an mlx form that nothing was kept beside, the weight is the scale less one, rounded; it is named."""
    source = checkpoint(tmp_path / "in", CONVERTED | {NORMS[0]: const(1.1, 2)}, QWEN, "mlx")
    found = convert(source, Order(tmp_path / "hf", "hf"), OPEN)
    assert np.allclose(np.array(arrays_in(tmp_path / "hf")[NORMS[0]]), 0.1, atol=1e-6)
    assert any(note.startswith("computed and rounded: ") and NORMS[0] in note for note in found.notes)
    assert found.left_out == (MTP,)


@pytest.mark.case("C17")
def test_c17_a_norm_that_was_trained_goes_back_less_one_and_the_others_as_they_were(tmp_path: Path) -> None:
    """C17: originals are taken where the scale is still what they lead to; of another scale it is computed."""
    weights = RAW | {name: filled({"w": (2,)}, seed)["w"] for seed, name in enumerate(NORMS)}
    convert(checkpoint(tmp_path / "raw", weights, QWEN, "pt"), Order(tmp_path / "mlx", "mlx"), OPEN)
    file = tmp_path / "mlx" / "model.safetensors"
    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    first, last = json.loads(content[8:start])[NORMS[0]]["data_offsets"]
    trained = const(1.25, 2).tobytes()
    file.write_bytes(content[: start + first] + trained + content[start + last :])
    convert(tmp_path / "mlx", Order(tmp_path / "hf", "hf"), OPEN)
    found = arrays_in(tmp_path / "hf")
    assert np.array(found[NORMS[0]]).tolist() == [0.25, 0.25]
    assert all(np.array(found[name]).tobytes() == weights[name].tobytes() for name in weights if name != NORMS[0])
