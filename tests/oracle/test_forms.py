"""Files under other names than the published ones: what loads there loads here, and the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracle import peer
from tests.oracle.arrays import assert_same
from tests.oracle.cases import each_case
from tests.oracle.conftest import Saved
from tests.oracle.models import model_of
from tests.oracle.peer import Held

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

Form = Callable[[Held, Held, str], Held]


def converted(written: Held, own: Held, base: str) -> Held:
    """The parameters' own names, both ends of a tie."""
    return own


def without_base(written: Held, own: Held, base: str) -> Held:
    """The base model's names without its prefix."""
    return {name.removeprefix(f"{base}."): held for name, held in written.items()}


def converted_without_base(written: Held, own: Held, base: str) -> Held:
    """Both at once."""
    return without_base(own, own, base)


def half_converted(written: Held, own: Held, base: str) -> Held:
    """The first layer converted, the rest as published."""

    def first(name: str) -> bool:
        return re.search(r"layers?\.0\.", name) is not None

    return {name: held for name, held in written.items() if not first(name)} | {
        name: held for name, held in own.items() if first(name)
    }


FORMS = (converted, without_base, converted_without_base, half_converted)


@each_case
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_other_names_load_alike(name: str, form: Form, saved: Saved, tmp_path: Path) -> None:
    directory = saved(name, "float32", False)
    base = model_of(name, "float32").base_model_prefix
    tensors = form(peer.tensors_in(directory), peer.converted_tensors(name, "float32"), base)
    written = peer.write(tensors, tmp_path / "model", peer.config_of(directory))
    model, info = peer.load(name, written)
    assert peer.misfits(info) == {}
    plan = peer.plan_for(name, "float32", written)
    plan.check()
    assert_same(plan.load(), plan, model.state_dict())
    plan.save(plan.load(), tmp_path / "again")
    assert peer.tensors_in(tmp_path / "again") == tensors


@each_case
def test_an_unknown_prefix_loads_nothing_and_is_refused(name: str, saved: Saved, tmp_path: Path) -> None:
    """The reference warns, and goes on with random parameters."""
    directory = saved(name, "float32", False)
    tensors = {f"foo.{key}": held for key, held in peer.tensors_in(directory).items()}
    written = peer.write(tensors, tmp_path / "model", peer.config_of(directory))
    missing = peer.load(name, written)[1]["missing_keys"]
    report = peer.plan_for(name, "float32", written).report
    assert set(report.missing) == set(missing) == set(peer.param_specs(model_of(name, "float32")))
    assert set(report.unexpected) | {record.name for record in report.dropped} == set(tensors)
