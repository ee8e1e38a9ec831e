"""A task that cannot take adapters says so, in the architecture's words, on every route."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.test_adapter_load import adapter, pair
from tests.plugins.installed import install_example
from tests.runtime.models import config_of, runnable
from tests.runtime.support import Cli


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A model of an architecture whose `adapters` is a reason."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    install_example(tmp_path / "site")
    folder = runnable(tmp_path / "base", tie_word_embeddings=True)
    config = config_of("llama", model_type="my_llama", tie_word_embeddings=True)
    (folder / "config.json").write_text(json.dumps(config))
    yield folder
    sys.modules.pop("my_llama", None)


def test_generate_and_convert_refuse_alike(cli: Cli, base: Path, tmp_path: Path) -> None:
    made = adapter(tmp_path / "one", pair())
    calls = (["generate", base, "-p", "text"], ["convert", base, tmp_path / "fused"])
    for call in calls:
        refused = cli(*call, "--adapter", made, "--json")
        assert refused.code == 2
        said = refused.data["error"]
        assert said["seen"] == "my_llama takes no lora adapter: not tried with adapters yet"
        assert said["expected"] == "a model without adapters"
    assert not (tmp_path / "fused").exists()
