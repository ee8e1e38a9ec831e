"""Pages that need no more than a tiny model: every block is run. And what a page names of the repository is there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.doc_blocks import run_page
from tests.doc_shell import Shell, outside, walk
from tests.guards import ROOT
from tests.runtime.models import runnable, write_model
from tests.runtime.quantizing.models import packable

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

# What lies there before the page begins.
RUN: Mapping[str, Callable[[], object]] = {
    "explanation/index-map": lambda: None,
    "explanation/rules": lambda: None,
    "explanation/scope": lambda: None,
    "how-to/add-a-quantization-format": lambda: None,
    "how-to/convert-between-layouts": lambda: write_model(Path("mixtral"), "mixtral"),
    "how-to/load-and-check": lambda: runnable(Path("model")),
    "how-to/look-at-a-mapping": lambda: write_model(Path("mixtral"), "mixtral"),
    "reference/expressions": lambda: None,
    "how-to/save-space": lambda: packable(Path("model")),
}


@pytest.mark.parametrize("name", RUN)
def test_the_page_is_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    RUN[name]()
    run_page(DOCS / f"{name}.md", capsys)


def test_the_page_on_what_does_not_fit_is_true(tmp_path: Path) -> None:
    runnable(tmp_path / "model")
    variables = outside()
    here = {**variables, "PATH": f"{Path(sys.executable).parent}:{variables['PATH']}"}
    assert walk(DOCS / "how-to" / "debug-a-mapping.md", Shell(tmp_path, here), tmp_path / "state") > 6


# What a vendor might call the parts of a Mixtral.
STRANGE = {
    **{"model": "decoder", "layers": "blocks", "self_attn": "attention", "lm_head": "output"},
    **{"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "dense"},
    **{"block_sparse_moe": "moe", "gate": "router", "w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"},
    **{"input_layernorm": "norm1", "post_attention_layernorm": "norm2"},
}


def test_the_page_on_a_new_layout_is_true(tmp_path: Path) -> None:
    file = write_model(tmp_path / "strange", "mixtral") / "model.safetensors"
    arrays = {
        ".".join(STRANGE.get(part, part) for part in name.split(".")): a for name, a in mx.load(str(file)).items()
    }
    write(file, {name: np.array(array) for name, array in arrays.items()})
    variables = outside()
    here = {**variables, "PATH": f"{Path(sys.executable).parent}:{variables['PATH']}"}
    assert walk(DOCS / "how-to" / "write-rules-for-a-new-layout.md", Shell(tmp_path, here), tmp_path / "state") > 4


def named(page: Path) -> list[tuple[str, str]]:
    """Give the files and folders of the repository that a page names, each with the test that it names there."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"`((?:tests|benchmarks|engine|rules|plugins|runtime)/[\w/.]*)(?:::(\w+))?", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_what_a_page_names_is_there(page: Path) -> None:
    for name, test in named(page):
        assert (ROOT / name).exists(), name
        assert not test or f"\ndef {test}(" in (ROOT / name).read_text(encoding="utf-8"), test


def test_every_law_names_the_tests_that_hold_it() -> None:
    sections = re.split(r"^## ", (DOCS / "explanation" / "laws.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    files = sorted((ROOT / "tests" / "laws").glob("test_law_*.py"))
    assert [section[0] for section in sections[:-1]] == [file.name.split("_")[2] for file in files]
    for section, file in zip(sections, files, strict=False):
        assert f"`tests/laws/{file.name}::" in section
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    titles = re.findall(r"^(\d)\. \*\*(.+?)\.\*\* ", contributing, re.MULTILINE)
    assert [section.partition("\n")[0] for section in sections[:-1]] == [f"{law}. {title}" for law, title in titles]
