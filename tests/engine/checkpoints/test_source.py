from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.raw_files import f32, write_f32
from weightloom.engine.checkpoints.source import AbsentSource, ByteSource, FileSource, MemorySource
from weightloom.engine.errors import CheckpointError, StorageError


def read(source: ByteSource, offset: int, length: int) -> bytes:
    buffer = bytearray(length)
    source.read_into(offset, memoryview(buffer))
    return bytes(buffer)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_f32(tmp_path / "a.safetensors", "ab", 1.5)


# -- files --


def test_reads_any_range(path: Path) -> None:
    content = path.read_bytes()
    source = FileSource(path)
    assert (source.name, source.size) == (str(path), len(content))
    assert read(source, 0, len(content)) == content
    assert read(source, 5, 7) == content[5:12]
    assert read(source, len(content), 0) == b""
    source.close()


def test_fills_a_buffer_of_any_format(path: Path) -> None:
    numbers = memoryview(bytearray(8)).cast("f")
    with_two_dimensions = memoryview(bytearray(8)).cast("B", (2, 4))
    for buffer in numbers, with_two_dimensions:
        FileSource(path).read_into(path.stat().st_size - 8, buffer)
        assert bytes(buffer) == f32("ab", 1.5)[1]


def test_a_file_cut_short_is_an_error_that_says_so(path: Path) -> None:
    source = FileSource(path)
    size = source.size
    os.truncate(path, size - 3)
    with pytest.raises(CheckpointError, match=f"cut short while reading: wanted 8 bytes at offset {size - 8}, got 5"):
        read(source, size - 8, 8)


def test_reads_in_pieces_give_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weightloom.engine.checkpoints.file_source._PIECE", 7)
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    assert read(FileSource(path), 3, 90) == bytes(range(3, 93))


def test_short_reads_of_the_system_are_gone_on_with(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel gives them for pieces beyond 2 GiB, and network file systems at any size."""
    preadv, source = os.preadv, FileSource(path)
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:5]], offset))
    assert read(source, 1, source.size - 1) == path.read_bytes()[1:]


def test_threads_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    content = os.urandom(1 << 16)
    path.write_bytes(content)
    source, wrong = FileSource(path), []

    def work(step: int) -> None:
        for offset in range(0, 60_000, 997 * step):
            if read(source, offset, 500) != content[offset : offset + 500]:
                wrong.append(offset)

    threads = [threading.Thread(target=work, args=(step,)) for step in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_closed_source_says_so(path: Path) -> None:
    source = FileSource(path)
    source.close()
    source.close()
    for call in source.check_unchanged, lambda: read(source, 0, 1):
        with pytest.raises(CheckpointError, match="closed"):
            call()


def test_the_descriptor_goes_with_the_last_reference(path: Path) -> None:
    before = descriptors()
    source = FileSource(path)
    assert descriptors() == before + 1
    del source
    gc.collect()
    assert descriptors() == before


def test_a_descriptor_is_not_inherited(path: Path) -> None:
    source = FileSource(path)
    links = {int(name): Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")}
    mine = [number for number, link in links.items() if link.exists() and link.samefile(path)]
    assert mine and not any(map(os.get_inheritable, mine))
    source.close()


def test_what_is_no_file_is_named(tmp_path: Path, path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, seen in (
        ("none", "no such file"),
        ("a.safetensors/x", "no such file"),
        ("nul\0", "no such file"),
        ("link", "a symbolic link to a file that is not there"),
        ("pipe", "not a regular file"),
        (".", "not a regular file"),
    ):
        before = descriptors()
        with pytest.raises(CheckpointError, match=seen) as caught:
            FileSource(tmp_path / name)
        assert caught.value.file == str(tmp_path / name)
        assert descriptors() == before


def test_what_the_system_refuses_is_a_storage_error(tmp_path: Path, path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in "loop", "n" * 300:
        with pytest.raises(StorageError):
            FileSource(tmp_path / name)


def test_too_many_open_files(path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 5, hard))
    try:
        with pytest.raises(StorageError, match="too many open files"):
            for _ in range(20):
                opened.append(FileSource(path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- changes --


def changed(source: FileSource, match: str) -> None:
    with pytest.raises(CheckpointError, match="has changed since it was opened") as caught:
        source.check_unchanged()
    assert match in caught.value.seen
    assert caught.value.file == source.name


def test_an_untouched_file_passes(path: Path) -> None:
    FileSource(path).check_unchanged()


def test_another_size_is_noticed(path: Path) -> None:
    source = FileSource(path)
    with path.open("ab") as file:
        file.write(b"x")
    changed(source, f"its size was {source.size} bytes and is {source.size + 1}")


def test_another_time_is_noticed(path: Path) -> None:
    source = FileSource(path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    changed(source, "its modification time is another")


def test_another_header_of_the_same_size_and_time_is_noticed(path: Path) -> None:
    source, status = FileSource(path), path.stat()
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"c"'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed(source, "its header is another")


def test_a_file_that_is_gone_is_noticed(path: Path) -> None:
    source = FileSource(path)
    path.unlink()
    changed(source, "it is gone")


def test_another_file_in_its_place_is_noticed(path: Path) -> None:
    source, status = FileSource(path), path.stat()
    other = write_f32(path.parent / "other", "xy", 1.5)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)
    changed(source, "its header is another")


def test_an_equal_copy_in_its_place_is_as_good(path: Path) -> None:
    source, status = FileSource(path), path.stat()
    copy = path.parent / "copy"
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.rename(path)
    source.check_unchanged()


def test_a_relative_path_is_checked_where_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    source = FileSource(path.name)
    monkeypatch.chdir("/")
    source.check_unchanged()
    assert source.name == path.name


# -- memory --


@given(st.lists(st.binary(max_size=6), max_size=6), st.data())
def test_pieces_read_as_their_sum(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    source = MemorySource(*pieces)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    assert source.size == len(whole)
    assert read(source, start, end - start) == whole[start:end]


def test_memory_is_not_copied() -> None:
    memory = bytearray(b"abcd")
    source = MemorySource(memoryview(memory).cast("B", (2, 2)), name="mine")
    memory[1] = ord("x")
    assert read(source, 0, 4) == b"axcd"
    assert source.name == "mine"
    source.check_unchanged()
    source.close()


@pytest.mark.parametrize("offset", [-1, 1, 5, 99])
def test_memory_ends_where_it_ends(offset: int) -> None:
    with pytest.raises(CheckpointError, match="cut short while reading"):
        read(MemorySource(b"ab", b"cd"), offset, 4)


def test_an_absent_source_has_a_size_only() -> None:
    source = AbsentSource(12)
    assert (source.name, source.size) == ("specs", 12)
    source.check_unchanged()
    source.close()
    with pytest.raises(CheckpointError, match="no data"):
        read(source, 0, 1)
