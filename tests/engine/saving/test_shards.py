from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from tests.engine.fault_shim import CountingFiles
from weightloom.engine.errors import StorageError, UsageError
from weightloom.engine.saving.shards import ShardError, ShardWriter, index_json, shard_names, split_into_shards
from weightloom.engine.spec import TensorSpec


def header_and_data(content: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(content[:8], "little")
    return content[8 : 8 + length], content[8 + length :]


@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20, 5 << 20])
def test_a_file_written_in_pieces_is_what_safetensors_writes(tmp_path: Path, step: int) -> None:
    size = 3000 if step == 1 else 700_000
    tensors = {"b": np.arange(size, dtype=np.float32), "a": np.arange(6, dtype=np.int8).reshape(2, 3)}
    reference = save(tensors)
    header, data = header_and_data(reference)
    with ShardWriter(tmp_path / "model.safetensors", header, len(data)) as shard:
        for start in range(0, len(data), step):
            shard.write(memoryview(data)[start : start + step])
    assert (tmp_path / "model.safetensors").read_bytes() == reference
    loaded = load_file(tmp_path / "model.safetensors")
    assert all(np.array_equal(loaded[name], tensors[name]) for name in tensors)


@given(st.data())
def test_pieces_may_come_in_any_order(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = data.draw(st.binary(max_size=200))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(content)))) | {0, len(content)})
    pieces = data.draw(st.permutations(list(pairwise(cuts))))
    path = tmp_path_factory.mktemp("order") / "shard"
    with ShardWriter(path, b"{}", len(content), CountingFiles()) as shard:
        for start, end in pieces:
            shard.write_at(start, content[start:end])
    assert path.read_bytes() == b"\x02\0\0\0\0\0\0\0{}" + content


def test_a_view_of_any_format_is_written_as_bytes(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    with ShardWriter(tmp_path / "s", b"{}", 24) as shard:
        shard.write(memoryview(array))
        shard.write(memoryview(np.zeros((0, 3), np.float32)))
    assert (tmp_path / "s").read_bytes()[10:] == array.tobytes()


def test_a_mix_of_small_and_large_pieces_keeps_its_order(tmp_path: Path) -> None:
    large = bytes(range(256)) * 8192
    pieces = [b"a", large, b"b", b"c" * 1000, large, b"d"]
    with ShardWriter(tmp_path / "s", b"{}", sum(map(len, pieces))) as shard:
        for piece in pieces:
            shard.write(piece)
    assert (tmp_path / "s").read_bytes()[10:] == b"".join(pieces)


def test_small_pieces_are_gathered_into_few_calls(tmp_path: Path) -> None:
    files = CountingFiles()
    with ShardWriter(tmp_path / "s", b"{}", 100_000, files) as shard:
        for _ in range(1000):
            shard.write(b"x" * 100)
    assert [action for action, _ in files.calls].count("write") == 2


@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        ([], "bytes 0 to 10 not written"),
        ([(0, 4)], "bytes 4 to 10 not written"),
        ([(4, 6)], "bytes 0 to 4 not written"),
        ([(0, 4), (6, 4)], "bytes 4 to 6 not written"),
        ([(0, 6), (4, 6)], "bytes 4 to 6 written twice"),
        ([(0, 10), (2, 3)], "bytes 2 to 5 written twice"),
        ([(0, 10), (0, 10)], "bytes 0 to 10 written twice"),
        ([(0, 11)], "bytes 0 to 11 of 10"),
        ([(9, 2)], "bytes 9 to 11 of 10"),
        ([(-1, 2)], "bytes -1 to 1 of 10"),
    ],
)
def test_a_shard_that_is_not_covered_once_is_refused(tmp_path: Path, pieces: list[tuple[int, int]], seen: str) -> None:
    with pytest.raises(ShardError, match=seen) as caught, ShardWriter(tmp_path / "s", b"{}", 10) as shard:
        for start, length in pieces:
            shard.write_at(start, bytes(length))
    assert caught.value.exit_code == 70
    assert caught.value.file == str(tmp_path / "s")


def test_a_shard_is_never_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"old")
    with pytest.raises(StorageError, match="file exists"):
        ShardWriter(tmp_path / "s", b"{}", 0)
    assert (tmp_path / "s").read_bytes() == b"old"


@pytest.mark.parametrize("fail_at", [1, 2, 3, 4, 5])
def test_an_error_while_writing_closes_the_file(tmp_path: Path, fail_at: int) -> None:
    files = CountingFiles(fail_at)
    with (
        pytest.raises(StorageError, match="disk full"),
        ShardWriter(tmp_path / "s", b"{}", 3, files) as shard,
    ):
        shard.write(b"abc")
    actions = [action for action, _ in files.calls]
    assert actions == ["create", "write", "write", "sync", "close"][:fail_at] + ["close"] * (1 < fail_at < 5)


specs = st.dictionaries(
    st.text("abc.", min_size=1),
    st.builds(TensorSpec, st.sampled_from(["U8", "F32", "F4"]), st.tuples(st.integers(0, 9), st.just(2))),
)


@given(specs, st.one_of(st.none(), st.integers(1, 100)))
def test_shards_keep_the_order_and_the_limit(specs: dict[str, TensorSpec], limit: int | None) -> None:
    shards = split_into_shards(specs, limit)
    assert [name for shard in shards for name in shard] == list(specs)
    assert len(shards) == 1 or all(shards)
    sizes = [sum(specs[name].nbytes for name in shard) for shard in shards]
    if limit is None:
        assert len(shards) == 1
        return
    assert all(size <= limit or len(shard) == 1 for size, shard in zip(sizes, shards, strict=True))
    assert all(sizes[n] + specs[shards[n + 1][0]].nbytes > limit for n in range(len(shards) - 1))


def test_a_tensor_above_the_limit_has_a_shard_of_its_own() -> None:
    sizes = {"a": 1, "b": 9, "c": 1, "d": 3, "e": 1}
    specs = {name: TensorSpec("U8", (size,)) for name, size in sizes.items()}
    assert split_into_shards(specs, 4) == [["a"], ["b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_shard_size_below_one_is_refused(limit: int) -> None:
    with pytest.raises(UsageError) as caught:
        split_into_shards({}, limit)
    assert caught.value.field == "max_shard_bytes"


def test_names() -> None:
    assert shard_names(1) == ["model.safetensors"]
    assert shard_names(2) == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def test_index_has_the_bytes_that_hubs_have() -> None:
    text = index_json({"b.é": "model-2", "a": "model-1"}, 24)
    assert text == (
        b'{\n  "metadata": {\n    "total_size": 24\n  },\n'
        b'  "weight_map": {\n    "a": "model-1",\n    "b.\\u00e9": "model-2"\n  }\n}\n'
    )
    assert json.loads(text)["weight_map"]["b.é"] == "model-2"
