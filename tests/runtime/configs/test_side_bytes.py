"""Small files beside the weights: links to nothing, pipes and directories are errors, never a wait, never "absent"."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runtime.models import runnable, sentence_files
from weightloom.engine.errors import CheckpointError, ConfigError, StorageError
from weightloom.runtime import embed, load
from weightloom.runtime.opening.sentence_steps import read_steps
from weightloom.runtime.opening.side_files import side_files

SIDE = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return runnable(tmp_path / "m")


def instead(folder: Path, name: str) -> Path:
    (folder / name).unlink(missing_ok=True)
    return folder / name


@pytest.mark.parametrize("name", SIDE)
def test_a_link_to_nothing_is_an_incomplete_download(folder: Path, name: str) -> None:
    instead(folder, name).symlink_to(folder / "blobs" / "0")
    with pytest.raises(CheckpointError, match=f"{name}: .*a symbolic link to a file that is not there"):
        _ = load(folder).tokenizer


def test_a_link_to_no_vocabulary_is_named(folder: Path) -> None:
    instead(folder, "tokenizer.json").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"tokenizer\.json: the tokenizer cannot be read: No such file"):
        _ = load(folder).tokenizer


@pytest.mark.parametrize("name", SIDE)
def test_a_pipe_is_refused_and_not_waited_for(folder: Path, name: str) -> None:
    os.mkfifo(instead(folder, name))
    with pytest.raises(CheckpointError, match=f"{name}: not a regular file"):
        _ = load(folder).tokenizer


@pytest.mark.parametrize("name", SIDE)
def test_a_directory_in_the_place_of_a_file_cannot_be_read(folder: Path, name: str) -> None:
    instead(folder, name).mkdir()
    with pytest.raises(StorageError, match=f"{name}: cannot read: is a directory"):
        _ = load(folder).tokenizer


@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json"])
def test_a_list_of_steps_that_is_not_there_is_no_silence(tmp_path: Path, name: str) -> None:
    folder = sentence_files(runnable(tmp_path / "m", "bert"))
    (folder / "modules.json").unlink()
    instead(folder, name).symlink_to("nowhere")
    with pytest.raises(CheckpointError, match=f"{name}: a symbolic link to a file that is not there"):
        embed(load(folder), ["a"])


def test_a_pipe_for_a_list_of_steps_is_refused_and_not_copied(folder: Path) -> None:
    os.mkfifo(folder / "modules.json")
    with pytest.raises(CheckpointError, match=r"modules\.json: not a regular file"):
        read_steps(folder)
    assert {each.name: each.why for each in side_files(folder).left}["modules.json"] == "not a file"


def test_a_byte_order_mark_is_no_part_of_a_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_bytes("\ufeff{{ messages[0].content }}".encode())
    assert load(folder).tokenizer.apply_chat_template([{"role": "user", "content": "hi"}]) == "hi"
