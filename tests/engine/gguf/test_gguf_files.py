from pathlib import Path
from typing import Any

import pytest

from tests.gguf_files import U, array, noise, write_gguf
from weightloom.engine import CheckpointError
from weightloom.engine.gguf import open_gguf, read_gguf


def part(folder: Path, number: int, count: int, names: list[str], **changes: Any) -> Path:
    metadata = {"split.no": U("H", number), "split.count": U("H", count), "split.tensors.count": U("i", 3), **changes}
    if number == 0:
        metadata |= {"general.name": "whole", "general.file_type": 3}
    tensors = [array(name, [float(number)]) for name in names]
    return write_gguf(folder / f"m-{number + 1:05d}-of-{count:05d}.gguf", metadata, tensors)


def three_parts(folder: Path) -> list[Path]:
    return [part(folder, 0, 3, ["a"]), part(folder, 1, 3, ["b"]), part(folder, 2, 3, ["c"])]


@pytest.mark.parametrize("chosen", [0, 1, 2, None])
def test_any_part_opens_all(tmp_path: Path, chosen: int | None) -> None:
    parts = three_parts(tmp_path)
    path = tmp_path if chosen is None else parts[chosen]
    with open_gguf(path) as checkpoint:
        assert list(checkpoint.tensors) == ["a", "b", "c"]
        assert checkpoint.metadata == {"general.name": "whole", "format": "gguf"}
        raw = bytearray(4)
        checkpoint.read_into("c", 0, memoryview(raw))
        assert raw == bytearray(b"\0\0\0\x40")
    assert read_gguf(path).files == tuple(parts)


def test_missing_parts_are_listed(tmp_path: Path) -> None:
    first, second, third = three_parts(tmp_path)
    second.unlink()
    third.unlink()
    with pytest.raises(CheckpointError) as caught:
        open_gguf(first)
    assert second.name in caught.value.seen and third.name in caught.value.seen


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"split.count": U("H", 4)}, "split.count is 4"),
        ({"split.no": U("H", 2)}, "split.no is 2"),
        ({"split.tensors.count": U("i", 9)}, "count is 9"),
    ],
)
def test_parts_that_do_not_belong_together(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    three_parts(tmp_path)
    changed = part(tmp_path, 1, 3, ["b"], **change)
    with pytest.raises(CheckpointError, match=words):
        read_gguf(changed)


def test_a_part_under_another_name_is_refused(tmp_path: Path) -> None:
    path = part(tmp_path, 0, 3, ["a"]).rename(tmp_path / "m.gguf")
    with pytest.raises(CheckpointError, match=r"split\.count is 3"):
        open_gguf(path)


def test_a_tensor_in_two_parts_is_refused(tmp_path: Path) -> None:
    part(tmp_path, 0, 3, ["a"]), part(tmp_path, 1, 3, ["b"])
    path = part(tmp_path, 2, 3, ["a"])
    for opening in (read_gguf, open_gguf):
        with pytest.raises(CheckpointError) as caught:
            opening(path)
        assert caught.value.tensor == "a"


def test_a_directory_must_have_one_model(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no \*\.gguf"):
        open_gguf(tmp_path)
    write_gguf(tmp_path / "one.gguf", {}, [])
    assert read_gguf(tmp_path).files == (tmp_path / "one.gguf",)
    write_gguf(tmp_path / "two.gguf", {}, [])
    with pytest.raises(CheckpointError, match="several"):
        open_gguf(tmp_path)


def test_a_path_that_names_nothing(tmp_path: Path) -> None:
    for name in ("none.gguf", "none", "a-00000-of-00002.gguf"):
        with pytest.raises(CheckpointError):
            open_gguf(tmp_path / name)


def test_scales_that_are_there_already_are_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", {}, [noise("a.weight", "Q4_0", (1, 32)), array("a.scales", [1.0])])
    with pytest.raises(CheckpointError) as caught:
        open_gguf(path)
    assert (caught.value.tensor, caught.value.file) == ("a.scales", str(path))


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", {}, [array("a", [1.0])])
    with open_gguf(path) as checkpoint:
        checkpoint.check_unchanged()
        write_gguf(path, {}, [array("a", [1.0, 2.0])])
        with pytest.raises(CheckpointError, match="changed"):
            checkpoint.check_unchanged()


def test_a_closed_checkpoint_says_so(tmp_path: Path) -> None:
    with open_gguf(write_gguf(tmp_path / "m.gguf", {}, [array("a", [1.0])])) as checkpoint:
        pass
    with pytest.raises(CheckpointError, match="closed"):
        checkpoint.read_into("a", 0, memoryview(bytearray(4)))
