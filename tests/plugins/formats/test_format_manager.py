"""Quantization formats of other packages: found by method, and one that cannot be used takes no other down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.installed import install_points
from weightloom.engine import TensorSpec
from weightloom.engine.errors import ConfigError
from weightloom.plugins.discovery.format_manager import GROUP, FormatManager
from weightloom.plugins.quantization import Stored

MODULE = """
from weightloom.plugins import hookimpl
from weightloom.plugins.quantization import QuantizationFormat, Unpacking

class Plugin:
    {interface}

    @hookimpl
    def weightloom_formats(self):
        yield QuantizationFormat("made up", ("made_up",), lambda stored: "its method", lambda *given: Unpacking(()))

PLUGIN = Plugin()
"""


def install(site: Path, monkeypatch: pytest.MonkeyPatch, module: str, interface: str = "") -> None:
    install_points(site, module, {GROUP: {"made_up": f"{module}:PLUGIN"}})
    (site / f"{module}.py").write_text(MODULE.format(interface=interface))
    monkeypatch.syspath_prepend(str(site))


def test_a_format_of_another_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "made_up_format")
    found = FormatManager().find(Stored({"quant_method": "made_up"}, {}))
    assert found is not None and (found[0].source, found[1]) == ("made_up_format", "its method")
    assert "made_up" in FormatManager().methods()


def test_one_that_is_too_new_is_named_and_the_rest_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "late_format", "interface = 99")
    with pytest.raises(ConfigError, match=r"late_format late_format:PLUGIN.*interface 99"):
        FormatManager().find(Stored({"quant_method": "made_up"}, {}))
    assert FormatManager().find(Stored({}, {"a.weight": TensorSpec("F32", (2, 2))})) is None


def test_an_unknown_method_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"(?s)'fp9'.*did you mean fp8"):
        FormatManager().find(Stored({"quant_method": "fp9"}, {}))
