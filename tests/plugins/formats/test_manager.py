"""Formats as plugins: found by the method that a config names or by what the tensors are, registered, and clashing."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.plugins.formats.codes import labelled, write
from weightloom.engine import Checkpoint, RuleSet, TensorSpec, WeightConverter
from weightloom.engine.codings.mxfp4 import Mxfp4
from weightloom.engine.errors import ConfigError, PluginError
from weightloom.engine.ops.coded import DequantizeCodes
from weightloom.engine.planning.composing.unpacking import Packed, plan_unpacked
from weightloom.plugins.discovery.format_manager import GROUP, FormatManager
from weightloom.plugins.quantization import PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

CODES = {"a.codes": TensorSpec("U8", (4, 16)), "a.powers": TensorSpec("U8", (4, 1))}
RULE = WeightConverter([r"\.codes", r"\.powers"], r"\.weight", [DequantizeCodes(Mxfp4())])


def detect(stored: Stored) -> str | None:
    return "tensors called codes" if any(name.endswith(".codes") for name in stored.specs) else None


def unpack(stored: Stored, dense: bool) -> Unpacking:
    stems = [name.removesuffix(".codes") for name in stored.specs if name.endswith(".codes")]
    return Unpacking(
        tuple(
            PackedModule(Packed(RULE, (f"{stem}.codes", f"{stem}.powers"), (f"{stem}.weight",)), None) for stem in stems
        )
    )


def plugin(*formats: object) -> object:
    class Plugin:
        @hookimpl
        def weightloom_formats(self) -> tuple[object, ...]:
            return formats

    return Plugin()


OURS = QuantizationFormat("ours", ("ours",), detect, unpack)


def test_a_registered_format_is_found_and_does_its_work(tmp_path: Path) -> None:
    manager = FormatManager()
    manager.register(plugin(OURS), "ours")
    assert "ours" in manager.methods()
    write(
        tmp_path / "m.safetensors",
        {"a.codes": labelled(np.full((4, 16), 0x21, np.uint8)), "a.powers": labelled(np.full((4, 1), 128, np.uint8))},
    )
    with Checkpoint.open(tmp_path / "m.safetensors") as checkpoint:
        stored = Stored({"quant_method": "Ours"}, checkpoint.logical)
        found = manager.find(stored)
        assert found is not None
        assert (found[0].name, found[0].source, found[1]) == ("ours", "ours", "tensors called codes")
        packed = [module.packed for module in found[0].unpack(stored, False).modules]
        plan = plan_unpacked(checkpoint, packed, RuleSet())
        params = plan.load(threads=1)
        values = np.array(params["a.weight"].astype(mx.float32))
        np.testing.assert_array_equal(values, [[1.0, 2.0] * 16] * 4)
        plan.save(params, tmp_path / "back")
    assert (tmp_path / "back" / "m.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()


def test_without_a_method_the_tensors_tell() -> None:
    manager = FormatManager()
    assert manager.find(Stored({}, CODES)) is None
    manager.register(plugin(OURS), "ours")
    assert manager.find(Stored({}, CODES)) is not None


def test_two_that_know_one_checkpoint_are_a_clash() -> None:
    manager = FormatManager()
    manager.register(plugin(OURS), "ours")
    manager.register(plugin(QuantizationFormat("theirs", ("theirs",), detect, unpack)), "theirs")
    with pytest.raises(PluginError, match=r"2 quantization formats know this checkpoint: ours:ours .*; theirs:theirs"):
        manager.find(Stored({}, CODES))
    found = manager.find(Stored({"quant_method": "theirs"}, CODES))
    assert found is not None
    assert found[0].name == "theirs"


@pytest.mark.parametrize("offered", [(), ("a text",)])
def test_a_plugin_that_offers_no_formats(offered: tuple[object, ...]) -> None:
    with pytest.raises(PluginError, match="plugin broken offers"):
        FormatManager().register(plugin(*offered), "broken")


def test_a_format_has_a_name_and_a_method() -> None:
    with pytest.raises(PluginError, match="quantization format 'ours' with methods"):
        QuantizationFormat("ours", (), detect, unpack)


def test_an_unknown_method_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError, match="serves quant_method 'hqq'") as caught:
        FormatManager().find(Stored({"quant_method": "hqq"}, CODES))
    assert all(name in str(caught.value.expected) for name in FormatManager().methods())


def test_every_method_that_is_installed_is_one_of_its_format_s() -> None:
    manager = FormatManager()
    for point in entry_points(group=GROUP):
        formats = [each for each in point.load().weightloom_formats() if point.name in each.methods]
        assert len(formats) == 1, point
    assert {"fp8", "mxfp4"} <= set(manager.methods())
