from __future__ import annotations

import json
from pathlib import Path

from weightloom.runtime.opening.side_files import side_files


def names(folder: Path) -> list[str]:
    return [name for name, _ in side_files(folder).taken]


def put(folder: Path, name: str, content: bytes = b"x") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_weights_of_any_format_stay_behind(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.bin", "c.gguf", "d.pt", "e.h5", "f.onnx", "g.msgpack", "h.ot", "sub/i.pth"):
        put(tmp_path, name)
    put(tmp_path, "tokenizer.model")
    found = side_files(tmp_path)
    assert names(tmp_path) == ["tokenizer.model"] and len(found.left) == 9
    assert {left.why for left in found.left} == {"weights"}


def test_the_weights_of_modules_that_are_listed_travel(tmp_path: Path) -> None:
    put(tmp_path, "2_Dense/model.safetensors")
    put(tmp_path, "original/model.safetensors")
    assert names(tmp_path) == []
    put(tmp_path, "modules.json", json.dumps([{"path": ""}, {"path": "2_Dense"}]).encode())
    assert names(tmp_path) == ["2_Dense/model.safetensors", "modules.json"]


def test_a_list_of_modules_that_is_none(tmp_path: Path) -> None:
    for content in (b"{", b"[1]", b'[{"path": [1]}]', b"\xff", b'{"a": 1}'):
        put(tmp_path, "modules.json", content)
        assert names(tmp_path) == ["modules.json"]


def test_links_to_files_are_followed_and_links_to_directories_are_not(tmp_path: Path) -> None:
    put(tmp_path, "blobs/abc", b"{}")
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(tmp_path / "blobs" / "abc")
    (folder / "round").symlink_to(folder)
    (folder / "gone.json").symlink_to(tmp_path / "nowhere")
    (folder / "self").symlink_to(folder / "self")
    assert names(folder) == ["tokenizer.json"]
    left = {left.name: left.why for left in side_files(folder).left}
    nothing = "a link to nothing"
    assert left == {"gone.json": nothing, "round": "a link to a directory", "self": nothing}


def test_hidden_directories_and_our_own_leftovers_stay(tmp_path: Path) -> None:
    for name in (".git/config", ".cache/huggingface/x", "__pycache__/m.pyc", ".out.weightloom-lock", ".gitattributes"):
        put(tmp_path, name)
    assert names(tmp_path) == [".gitattributes"]
