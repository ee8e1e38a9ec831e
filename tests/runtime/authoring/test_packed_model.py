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


def test_rules_that_lead_astray_are_shown_and_not_refused(tmp_path: Path) -> None:
    path = make(tmp_path, "qwen3_moe", VENDORS["fp8 blocks"]).path
    with open_subject(path) as subject:
        text = NONE.replace("rules: []", "rules: [{rename: {from: 'gate_proj', to: 'gating'}}]")
        found = replan(text.encode(), "mine.yaml", subject)
        assert found.plan is not None and found.error is not None
        assert any(name.endswith("mlp.experts.gate_up_proj_scales") for name in found.plan.report.missing)
        assert any(name.endswith("gate_proj.weight_scale_inv") for name in found.plan.report.unexpected)


def test_what_takes_packed_rows_apart_has_its_line(tmp_path: Path) -> None:
    path = make(tmp_path, "qwen3_moe", VENDORS["fp8 blocks"]).path
    turned = "rules:\n      - convert: {from: '(q|k)_proj\\.weight', to: '\\1_proj.weight', ops: [{Transpose: {}}]}"
    with open_subject(path) as subject:
        found = replan(NONE.replace("rules: []", turned).encode(), "mine.yaml", subject)
        (fault,) = found.faults
        assert (fault.line, fault.column) == (7, 9) and "would take its rows apart" in fault.seen
