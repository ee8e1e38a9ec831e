"""C80, C81, C82 through load: what strict=False forgives, and what it never does."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Arrays, filled, t0, t0_shapes
from tests.runtime.support import T0_CONFIG, Cli, checkpoint
from weightloom.engine import PlanError
from weightloom.runtime import load

Q = "model.layers.0.self_attn.q_proj.weight"


def cases() -> dict[str, tuple[Arrays, str]]:
    """Each file of C80, and what the error says; then files in which one whole module is not there."""
    file = t0()
    return {
        "prefixed": ({f"x.{name}": array for name, array in file.items()}, "none of 21 tensors leads to a parameter"),
        "half the rows": ({**file, Q: file[Q][:4]}, rf"{Q}: F32 \[4, 8\]; expected F32 \[8, 8\]"),
        "packed": ({**file, Q: np.ones((8, 8), np.uint32)}, r"U32 \[8, 8\]; expected F32 .* \(another class"),
        "no layer 1": ({n: a for n, a in file.items() if ".layers.1." not in n}, r"model\.layers\.1\.\* x9"),
        "no norm": ({n: a for n, a in file.items() if n != "model.norm.weight"}, "model.norm.weight"),
    }


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", list(cases()))
@pytest.mark.case("C80")
def test_c80_what_is_refused_leniently_too(tmp_path: Path, kind: str, strict: bool) -> None:
    """C80."""
    file, said = cases()[kind]
    with pytest.raises(PlanError, match=said):
        load(checkpoint(tmp_path, file), strict=strict)


@pytest.mark.case("C82")
def test_c82_a_lenient_load_says_what_it_leaves_out(tmp_path: Path) -> None:
    """C82: layer 0 is loaded, the nine tensors of layer 1 are reported as one group, and are saved back."""
    path = checkpoint(tmp_path / "t0", t0(), {**T0_CONFIG, "num_hidden_layers": 1})
    with pytest.raises(PlanError, match=r"model\.layers\.1\.\* x9") as caught:
        load(path)
    assert "fewer layers (num_hidden_layers = 1) than the file" in str(caught.value)
    m = load(path, strict=False)
    assert len(m.report.unexpected) == 9 and len(m.model.model.layers) == 1
    assert any("9 tensors lead to no parameter" in note and "model.layers.1.* x9" in note for note in m.notes)
    m.save(tmp_path / "back")
    assert (tmp_path / "back/model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()


@pytest.mark.case("C81")
def test_c81_the_prefix_that_is_named_is_a_rule_that_loads(tmp_path: Path, cli: Cli) -> None:
    """C81: few lines, the full list with --all, all names in JSON; and the rule, put into a file, loads."""
    path = checkpoint(tmp_path / "net", filled(t0_shapes(2, "net.")))
    short, full = cli("plan", path), cli("plan", path, "--all")
    assert "prefix net. -> model. would match 21 of 21 names" in short.err and len(short.err.splitlines()) < 20
    assert "net.layers.1.mlp.up_proj.weight" not in short.out and "net.layers.1.mlp.up_proj.weight" in full.out
    assert len(cli("plan", path, "--json").data["report"]["unexpected"]) == 20
    rules = tmp_path / "net.yaml"
    given = short.err.partition("in a rule file: ")[2].partition("})")[0] + "}"
    rules.write_text(f"schema: 1\nfamily: net\nlayouts:\n  hf:\n    rules:\n      - {given}\n")
    tokens = mx.array([[1, 2, 3]])
    wanted = load(checkpoint(tmp_path / "t0")).model(tokens)
    assert mx.array_equal(load(path, rules=rules).model(tokens), wanted).item()
