"""A config that says which of several architectures it is for; one that says it wrongly."""

from pathlib import Path

import pytest

from weightloom.engine.errors import ConfigError
from weightloom.runtime.choosing.settled import settled_architecture
from weightloom.runtime.configs.config import Config, read_config


def config(folder: Path, text: str) -> Config:
    path = folder / "config.json"
    path.write_text(text)
    return read_config(path)


def test_what_is_asked_for_comes_before_what_the_config_says(tmp_path: Path) -> None:
    said = config(tmp_path, '{"model_type": "llama", "weightloom": {"architecture": "theirs:mine"}}')
    assert settled_architecture(said, None) == "theirs:mine"
    assert settled_architecture(said, "ours") == "ours"
    assert settled_architecture(config(tmp_path, '{"model_type": "llama"}'), None) is None


@pytest.mark.parametrize("wrong", ["3", '"theirs"', "{}", '{"architecture": 1}', "[]"])
def test_a_section_that_says_nothing_is_refused_by_name(tmp_path: Path, wrong: str) -> None:
    said = config(tmp_path, f'{{"model_type": "llama", "weightloom": {wrong}}}')
    with pytest.raises(ConfigError, match=r"weightloom is .*") as raised:
        settled_architecture(said, None)
    assert raised.value.field == "weightloom.architecture"
