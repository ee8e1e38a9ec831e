"""Rules are tried on quantized checkpoints as a load reads them: as MLX packs modules, and as a vendor does."""

from __future__ import annotations

from pathlib import Path

from tests.plugins.formats.vendors import VENDORS, make
from tests.runtime.quantizing.models import packable
from tests.runtime.support import Cli
from weightloom.runtime.authoring.replan import replan
from weightloom.runtime.authoring.subject import open_subject
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.inspecting.reading import planned

HEAD = "schema: 1\nfamily: mine\napplies_to: {model_types: [mine]}\nlayouts:\n  hf: &same\n    rules: "
NONE = (HEAD + "[]\n  mlx:\n    rules: []\n").replace("&same", "")
OTHERS = NONE.replace("rules: []", "rules: [{rename: {from: 'input_layernorm', to: 'nowhere'}}]")


def assert_as_loaded(path: Path) -> None:
    with planned(str(path), Wish()) as found, open_subject(path) as subject:
        tried = replan(NONE.encode(), "mine.yaml", subject)
        assert tried.faults == () and tried.error is None
        assert tried.plan is not None and tried.plan.groups == found.plan.groups
        wanted = subject.wanted(tried.plan)
        assert wanted is not None and wanted.keys() == found.plan.params.keys()
        other = replan(OTHERS.encode(), "mine.yaml", subject)
        assert other.plan is not None and other.plan.report.set_aside
        assert replan(NONE.encode(), "mine.yaml", subject).plan == tried.plan


def test_as_a_vendor_packs(tmp_path: Path) -> None:
    assert_as_loaded(make(tmp_path, "qwen3_moe", VENDORS["fp8 blocks"]).path)


def test_as_mlx_packs(cli: Cli, tmp_path: Path) -> None:
    source = packable(tmp_path / "plain")
    assert cli("convert", source, tmp_path / "packed", "--layout", "mlx", "--quantize", "4bit").code == 0
    assert_as_loaded(tmp_path / "packed")
