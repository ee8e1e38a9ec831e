"""What the file of kept tensors says of itself: the weights that it belongs to, and where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from weightloom.engine.errors import CheckpointError
from weightloom.engine.spec import TensorSpec

FORMAT = "weightloom-kept"
SCHEMA = "1"
SEAL = "seal"


@dataclass(frozen=True, slots=True)
class KeptNote:
    """`layout` and `source_layout` by name; `weights` and `config` are digests of what it lies beside.

    `model_type` is the one that was said in place of the config's, else "". `lengths` are the bytes of data of the
    source's files, in order.
    """

    layout: str
    source_layout: str
    weights: str
    config: str
    model_type: str
    lengths: tuple[int, ...]

    def metadata(self) -> dict[str, str]:
        """Give it as a header's metadata."""
        texts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"format": FORMAT, "schema": SCHEMA, **texts, "lengths": ",".join(map(str, self.lengths))}


def read_note(metadata: Mapping[str, str], file: str) -> KeptNote:
    """Read it from a header's metadata; raises CheckpointError, naming the field that is not as it was written."""
    for name, wanted in (("format", FORMAT), ("schema", SCHEMA)):
        if metadata.get(name) != wanted:
            raise _bad(file, name, metadata.get(name, "nothing"), wanted)
    found = {field.name: metadata.get(field.name) for field in fields(KeptNote)}
    for name, text in found.items():
        if text is None:
            raise _bad(file, name, "nothing", "a text")
    lengths = [text for text in (found.pop("lengths") or "").split(",") if text]
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in lengths):
        raise _bad(file, "lengths", metadata["lengths"], "whole numbers with commas between")
    return KeptNote(**{name: text or "" for name, text in found.items()}, lengths=tuple(map(int, lengths)))


def seal_of(metadata: Mapping[str, str], records: Mapping[str, bytes]) -> str:
    """Give the sha256 of a note's texts and of the records beside it (config, index, headers), in any order."""
    texts = sorted(f"{name}\0{text}\n" for name, text in metadata.items() if name != SEAL)
    digests = sorted(f"{name}\0{bytes_digest(data)}\n" for name, data in records.items())
    return bytes_digest("".join([*texts, *digests]).encode("utf-8", "surrogatepass"))


def specs_digest(specs: Mapping[str, TensorSpec]) -> str:
    """Give the sha256 of names, dtypes and shapes, in any order."""
    lines = sorted(f"{name}\0{spec.dtype}\0{','.join(map(str, spec.shape))}\n" for name, spec in specs.items())
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def bytes_digest(data: bytes) -> str:
    """Give the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def _bad(file: str, field: str, seen: str, expected: str) -> CheckpointError:
    return CheckpointError(
        f"the file of kept tensors says {seen!r} for {field}",
        expected=expected,
        hint="it is damaged or of another version: remove it to go on without what it keeps",
        file=file,
        field=field,
    )
