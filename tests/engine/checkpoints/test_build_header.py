from __future__ import annotations

import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.raw_files import file_bytes
from weightloom.engine.checkpoints.header import build_header, parse_header
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import CheckpointError
from weightloom.engine.spec import TensorSpec

SPECS = st.builds(TensorSpec, st.sampled_from(sorted(set(DTYPES) - {"F4"})), st.tuples(st.integers(0, 3), st.just(4)))
NAMES = st.text(max_size=5).filter(lambda name: name != "__metadata__")


@given(st.dictionaries(NAMES, SPECS), st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3)))
def test_a_built_header_reads_back(specs: dict[str, TensorSpec], metadata: dict[str, str] | None) -> None:
    raw = build_header(list(specs.items()), metadata)
    assert len(raw) % 8 == 0
    header = parse_header(raw, sum(spec.nbytes for spec in specs.values()), file="new")
    assert header.metadata == metadata
    assert {e.name: TensorSpec(e.dtype, e.shape) for e in header.entries} == specs
    assert [e.name for e in header.entries] == list(specs)
    assert [e.start for e in header.entries[1:]] == [e.end for e in header.entries[:-1]]


def test_a_built_header_is_compact() -> None:
    raw = build_header([("ä", TensorSpec("F32", (2,)))], {"format": "mlx"})
    text = '{"__metadata__":{"format":"mlx"},"ä":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    assert raw.decode().rstrip(" ") == text
    assert [name for name, _ in safetensors.deserialize(file_bytes(raw, bytes(8)))] == ["ä"]


@pytest.mark.parametrize(
    ("entries", "seen"),
    [
        ([("__metadata__", TensorSpec("F32"))], "taken"),
        ([("a", TensorSpec("F32")), ("a", TensorSpec("F32"))], "taken"),
        ([("a", TensorSpec(None))], "unknown dtype None"),
        ([("a", TensorSpec("F9"))], "unknown dtype 'F9'"),
        ([("a", TensorSpec("F4", (3,)))], "F4 elements"),
        ([("a", TensorSpec("F32", (-1,)))], "size -1"),
        ([("\ud800", TensorSpec("F32"))], "half a surrogate pair"),
    ],
)
def test_a_header_that_cannot_be_built(entries: list[tuple[str, TensorSpec]], seen: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        build_header(entries, None)
    assert seen in caught.value.seen


def test_metadata_of_new_files_holds_texts_only() -> None:
    with pytest.raises(CheckpointError, match="has the value 1 for 'n'"):
        build_header([], {"n": 1})  # type: ignore[dict-item]
