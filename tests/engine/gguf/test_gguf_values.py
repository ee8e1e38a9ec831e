from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gguf_files import BLOCKS, Tensor, array, noise, write_gguf
from weightloom.engine import Checkpoint, MissingExtra
from weightloom.engine.gguf import open_gguf

TYPES = {"U32": np.uint32, "U8": np.uint8, "F16": np.float16, "F32": np.float32, "BF16": np.uint16, "I8": np.int8}
PACKED = {"Q4_0": 4, "Q4_1": 4, "Q5_0": 5, "Q5_1": 5, "Q8_0": 8}
SUPER = {"Q4_K": 4, "Q5_K": 5}
SCALES = [0.0, -0.0, 6e-8, -6e-8, 6.1e-5, 1e-3, -1.0, 511.75, 512.0, -8188.0, 8192.0, 65504.0, -65504.0]


def read(checkpoint: Checkpoint, name: str) -> np.ndarray[Any, Any]:
    spec = checkpoint.tensors[name]
    found = np.zeros(spec.shape, TYPES[spec.dtype or ""])
    if spec.nbytes:
        checkpoint.read_into(name, 0, memoryview(found).cast("B"))
    return found


def dequantized(checkpoint: Checkpoint, stem: str, bits: int) -> np.ndarray[Any, Any]:
    """What MLX makes of the triple in float32."""
    weight, scales, biases = (mx.array(read(checkpoint, f"{stem}.{part}")) for part in ("weight", "scales", "biases"))
    with mx.stream(mx.cpu):
        values = mx.dequantize(weight, scales.astype(mx.float32), biases.astype(mx.float32), 32, bits)
        mx.eval(values)
    return np.array(values)


def reference(tensor: Tensor) -> np.ndarray[Any, Any]:
    gguf = pytest.importorskip("gguf")
    block, nbytes = BLOCKS[tensor.type]
    raw = np.frombuffer(tensor.data, np.uint8).reshape(*tensor.shape[:-1], tensor.shape[-1] // block * nbytes)
    with np.errstate(all="ignore"):
        found: np.ndarray[Any, Any] = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[tensor.type])
    return found


def with_scales(kind: str, scales: list[float], minima: list[float], codes: bytes) -> Tensor:
    """One row a block, with the given scales and random codes."""
    nbytes = BLOCKS[kind][1]
    raw = np.frombuffer(np.random.default_rng(len(codes)).bytes(len(scales) * nbytes), np.uint8).reshape(-1, nbytes)
    raw = raw.copy()
    raw[:, :2] = np.asarray(scales, "<f2")[:, None].view(np.uint8)
    if kind in ("Q4_1", "Q5_1"):
        raw[:, 2:4] = np.asarray(minima, "<f2")[:, None].view(np.uint8)
    flat = raw[:, 4:].reshape(-1)
    flat[: len(codes)] = np.frombuffer(codes, np.uint8)[: len(flat)]
    raw[:, 4:] = flat.reshape(len(scales), -1)
    return Tensor("a.weight", kind, (len(scales), 32), raw.tobytes())


half = st.floats(-65504, 65504, width=16) | st.sampled_from(SCALES)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(PACKED)),
    pairs=st.lists(st.tuples(half, half), min_size=1, max_size=6),
    codes=st.binary(max_size=64),
)
def test_triples_have_the_values_of_the_blocks(
    tmp_path: Path, kind: str, pairs: list[tuple[float, float]], codes: bytes
) -> None:
    tensor = with_scales(kind, [d for d, _ in pairs], [m for _, m in pairs], codes)
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [tensor])) as checkpoint:
        found = dequantized(checkpoint, "a", PACKED[kind])
    # Equal as numbers: of a zero the sign may differ.
    assert np.array_equal(found, reference(tensor))


@pytest.mark.parametrize(
    ("kind", "scale", "dtype"),
    [
        ("Q4_0", 8188.0, "F16"),
        ("Q4_0", -8188.0, "F16"),
        ("Q4_0", 8192.0, "F32"),
        ("Q8_0", 511.75, "F16"),
        ("Q8_0", -512.0, "F32"),
        ("Q8_0", 6e-8, "F16"),
        ("Q4_1", 65504.0, "F16"),
        ("Q5_0", 4094.0, "F16"),
        ("Q5_0", 4096.0, "F32"),
        ("Q5_1", 65504.0, "F16"),
    ],
)
def test_scales_are_float32_only_where_a_bias_does_not_fit(tmp_path: Path, kind: str, scale: float, dtype: str) -> None:
    tensor = with_scales(kind, [0.5, scale, 1.0], [0.0, 1.0, 2.0], b"")
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [tensor])) as checkpoint:
        specs = {name: (spec.dtype, spec.shape) for name, spec in checkpoint.tensors.items()}
    words = 32 * PACKED[kind] // 32
    assert specs == {"a.weight": ("U32", (3, words)), "a.scales": (dtype, (3, 1)), "a.biases": (dtype, (3, 1))}


@pytest.mark.parametrize("shape", [(3, 64), (2, 3, 96), (1, 32), (0, 32)])
@pytest.mark.parametrize("kind", sorted(PACKED))
def test_triples_of_any_shape(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    tensor = noise("x.weight", kind, shape, seed=3)
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [array("first", [1.0]), tensor])) as checkpoint:
        assert checkpoint.tensors["x.weight"].shape == (*shape[:-1], shape[-1] * PACKED[kind] // 32)
        if 0 not in shape:
            assert np.array_equal(dequantized(checkpoint, "x", PACKED[kind]), reference(tensor))


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("a.weight", "Q6_K", (3, 256)),
        ("a.weight", "Q6_K", (2, 512)),
        ("a.weight", "Q4_0", (64,)),
        ("table", "Q8_0", (2, 32)),
    ],
)
def test_other_blocks_become_float32(tmp_path: Path, name: str, kind: str, shape: tuple[int, ...]) -> None:
    """Blocks that MLX has no exact form for, and packed ones in a place that has no scales and biases."""
    tensor = noise(name, kind, shape)
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [tensor])) as checkpoint:
        assert {n: (s.dtype, s.shape) for n, s in checkpoint.tensors.items()} == {name: ("F32", shape)}
        assert np.array_equal(read(checkpoint, name), reference(tensor))


def test_plain_types_stay_as_they_are(tmp_path: Path) -> None:
    raw = np.random.default_rng(0).bytes(24)
    kinds = {"F32": 4, "F16": 2, "BF16": 2, "I8": 1}
    tensors = [Tensor(kind, kind, (2, 12 // width), raw) for kind, width in kinds.items()]
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, tensors)) as checkpoint:
        assert {name: spec.dtype for name, spec in checkpoint.tensors.items()} == {kind: kind for kind in kinds}
        for kind in kinds:
            assert read(checkpoint, kind).tobytes() == raw


@pytest.mark.parametrize("shape", [(3, 64), (2, 3, 96), (0, 32)])
def test_mxfp4_is_mlx_s_own(tmp_path: Path, shape: tuple[int, ...]) -> None:
    made = noise("x.weight", "MXFP4", shape, seed=5)
    raw = np.frombuffer(made.data, np.uint8).reshape(-1, 17).copy()
    raw[:, 0] = 100 + raw[:, 0] % 40  # powers that neither overflow nor vanish
    tensor = Tensor("x.weight", "MXFP4", shape, raw.tobytes())
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [array("first", [1.0]), tensor])) as checkpoint:
        specs = {name: (spec.dtype, spec.shape) for name, spec in checkpoint.tensors.items() if name != "first"}
        words, powers = (*shape[:-1], shape[-1] // 8), (*shape[:-1], shape[-1] // 32)
        assert specs == {"x.weight": ("U32", words), "x.scales": ("U8", powers)}
        if 0 not in shape:
            weight, scales = (mx.array(read(checkpoint, f"x.{part}")) for part in ("weight", "scales"))
            found = mx.dequantize(weight, scales, None, 32, 4, "mxfp4", dtype=mx.float32)
            assert np.array_equal(np.array(found), reference(tensor))


@pytest.mark.parametrize("shape", [(3, 256), (2, 3, 512), (1, 256), (0, 256)])
@pytest.mark.parametrize("kind", sorted(SUPER))
def test_groups_of_a_block_have_scales_of_their_own(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    tensor = noise("x.weight", kind, shape, seed=5)
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [array("first", [1.0]), tensor])) as checkpoint:
        specs = {name: (spec.dtype, spec.shape[-1]) for name, spec in checkpoint.tensors.items() if name != "first"}
        groups = ("F32", shape[-1] // 32)
        assert specs == {"x.weight": ("U32", shape[-1] * SUPER[kind] // 32), "x.scales": groups, "x.biases": groups}
        if 0 not in shape:
            assert np.array_equal(dequantized(checkpoint, "x", SUPER[kind]), reference(tensor))


LARGE = {kind: noise("x.weight", kind, (300, 4096), seed=1) for kind in ("Q4_0", "Q5_0", "Q5_K", "Q8_0")}


@pytest.mark.parametrize("kind", sorted(LARGE))
def test_a_range_of_bytes_is_that_of_the_whole(tmp_path: Path, kind: str) -> None:
    """Ranges begin and end anywhere, also beyond one piece of scratch."""
    rng = np.random.default_rng(5)
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [LARGE[kind]])) as checkpoint:
        for name in checkpoint.tensors:
            whole = read(checkpoint, name).tobytes()
            for _ in range(12):
                start, stop = sorted(int(n) for n in rng.integers(0, len(whole) + 1, 2))
                part = bytearray(stop - start)
                checkpoint.read_into(name, start, memoryview(part))
                assert bytes(part) == whole[start:stop]


def test_a_row_reads_only_its_blocks(tmp_path: Path) -> None:
    """A cut file gives the rows that are still there; only then is it noticed."""
    path = write_gguf(tmp_path / "m.gguf", {}, [LARGE["Q8_0"]])
    with open_gguf(path) as checkpoint:
        row = bytearray(4096)
        checkpoint.read_into("x.weight", 0, memoryview(row))
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        again = bytearray(4096)
        checkpoint.read_into("x.weight", 0, memoryview(again))
        assert row == again


def test_without_the_gguf_package_its_types_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    monkeypatch.setitem(__import__("sys").modules, "gguf.quants", None)
    tensors = [noise("a.weight", "Q6_K", (1, 256)), noise("b.weight", "Q4_0", (1, 32))]
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, tensors)) as checkpoint:
        read(checkpoint, "b.weight")
        with pytest.raises(MissingExtra, match=r"weightloom\[gguf\]"):
            read(checkpoint, "a.weight")
